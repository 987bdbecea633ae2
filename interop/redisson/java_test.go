package interop_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// build has Maven compile the Java program and returns its class path.
func build(t *testing.T) string {
	t.Helper()
	for _, tool := range []string{"java", "javac", "mvn"} {
		if _, err := exec.LookPath(tool); err != nil {
			unable(t, "%s is not in PATH: install a JDK (17 or newer) and Maven", tool)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "mvn", "--quiet", "--batch-mode", "process-classes").CombinedOutput(); err != nil {
		unable(t, "mvn process-classes: %v\n%s", err, out)
	}
	return filepath.Join("target", "classes") + string(os.PathListSeparator) + filepath.Join("target", "lib", "*")
}

// unable skips the test where Java is not demanded.
func unable(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("BELAY_REQUIRE_INTEROP") == "1" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// peer is a running Java program: one Redisson client. See Peer.java for what
// it understands.
type peer struct {
	version string // of Redisson
	program string // class path

	cmd    *exec.Cmd
	stdin  io.WriteCloser
	log    bytes.Buffer  // standard error; complete when it has exited
	exited chan struct{} // closed when it has ended
	ready  chan string   // gets the version

	mu      sync.Mutex
	threads map[string]*thread
}

// start starts a Redisson client, which ends with the test.
func start(t *testing.T, program string, addrs []string) *peer {
	t.Helper()
	p := &peer{
		program: program,
		cmd: exec.Command("java", "-Dfile.encoding=UTF-8", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", program,
			"belay.interop.Peer", strings.Join(addrs, ","), strconv.FormatInt(ttl.Milliseconds(), 10)),
		exited:  make(chan struct{}),
		ready:   make(chan string, 1),
		threads: map[string]*thread{},
	}
	p.cmd.Stderr = &p.log
	stdin, err1 := p.cmd.StdinPipe()
	stdout, err2 := p.cmd.StdoutPipe()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	p.stdin = stdin
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.listen(stdout)
	t.Cleanup(func() { p.stop(t) })

	select {
	case p.version = <-p.ready:
	case <-p.exited:
		t.Fatal("the Java program ended at once")
	case <-time.After(limit):
		t.Fatal("the Java program does not get ready")
	}
	return p
}

// listen hands each answer to its thread.
func (p *peer) listen(stdout io.Reader) {
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		name, answer, _ := strings.Cut(lines.Text(), " ")
		if name == "ready" {
			p.ready <- answer
			continue
		}
		p.mu.Lock()
		th := p.threads[name]
		p.mu.Unlock()
		if th != nil {
			th.answers <- answer
		}
	}
	_ = p.cmd.Wait()
	close(p.exited)
}

// stop ends the program and shows what it logged if the test has failed.
func (p *peer) stop(t *testing.T) {
	t.Helper()
	p.stdin.Close()
	select {
	case <-p.exited:
	case <-time.After(20 * time.Second):
		t.Error("the Java program does not end with its input")
		p.kill()
	}
	if t.Failed() {
		t.Logf("the Java program logged:\n%s", p.log.String())
	}
}

// kill gives the program no chance to release anything.
func (p *peer) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// thread is a thread of the Java program, and so an owner of locks.
type thread struct {
	peer    *peer
	name    string
	answers chan string
}

func (p *peer) thread(name string) *thread {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.threads[name] == nil {
		p.threads[name] = &thread{p, name, make(chan string, 100)}
	}
	return p.threads[name]
}

// begin tells the thread what to do next. Each begin needs an await.
func (th *thread) begin(t *testing.T, command ...string) {
	t.Helper()
	if _, err := fmt.Fprintln(th.peer.stdin, th.name, strings.Join(command, " ")); err != nil {
		t.Fatal(err)
	}
}

// await waits for the next answer: "ok RESULT" or "failed EXCEPTION".
func (th *thread) await(t *testing.T) string {
	t.Helper()
	select {
	case answer := <-th.answers:
		return answer
	case <-th.peer.exited:
		t.Fatalf("the Java program ended before thread %s was done", th.name)
	case <-time.After(limit):
		t.Fatalf("thread %s is not done in time", th.name)
	}
	return ""
}

// do has the thread do something that must succeed, and returns the result.
func (th *thread) do(t *testing.T, command ...string) string {
	t.Helper()
	th.begin(t, command...)
	return th.result(t)
}

// result is await where nothing but success is expected.
func (th *thread) result(t *testing.T) string {
	t.Helper()
	answer := th.await(t)
	result, ok := strings.CutPrefix(answer, "ok ")
	if !ok {
		t.Fatalf("thread %s: %s", th.name, answer)
	}
	return result
}
