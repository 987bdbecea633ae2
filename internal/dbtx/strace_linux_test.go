package dbtx_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/belaygo/belay/internal/teststack"
)

// inject has strace tamper with the system calls of a process on one file, from
// when inject returns until stop is called or the test ends. Where strace may not
// attach to a process the test is skipped, or fails where the stack is required.
func inject(tb testing.TB, pid int, path, fault string) (stop func()) {
	tb.Helper()
	call, _, _ := strings.Cut(fault, ":")
	cmd := exec.Command(teststack.Program(tb, "strace", "strace"), "-f", "-p", strconv.Itoa(pid), "-P", path,
		"-e", "trace="+call, "-e", "inject="+fault, "-o", os.DevNull)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatalf("start strace: %v", err)
	}
	says, _ := bufio.NewReader(stderr).ReadString('\n')
	if !strings.Contains(says, "attached") {
		_ = cmd.Wait()
		teststack.Missing(tb, "strace can't attach to a process of the test's own, in a container without CAP_SYS_PTRACE, say: %s", says)
	}
	var read sync.WaitGroup
	read.Go(func() { _, _ = io.Copy(io.Discard, stderr) })
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(os.Interrupt) // it detaches, unless it has ended with the process
		read.Wait()
		_ = cmd.Wait()
	})
	tb.Cleanup(stop)
	return stop
}
