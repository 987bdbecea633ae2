package testproc_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/belaygo/belay/internal/testproc"
)

const echo = "BELAY_TESTPROC_ECHO"

func TestMain(m *testing.M) {
	if os.Getenv(echo) == "" {
		goleak.VerifyTestMain(m)
		return
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Fprintln(os.Stdout, "heard", lines.Text())
	}
}

func heard(line string) bool { return strings.HasPrefix(line, "heard") }

func TestSelf(t *testing.T) {
	p := testproc.Start(t, "echo", testproc.Self(echo+"=1"))
	p.Say("a")
	if got := p.Await("what it heard", heard); got != "heard a" {
		t.Errorf("said %q", got)
	}
	p.Say("b")
	if got := p.AwaitAll("what it heard", 2, heard); !slices.Equal(got, []string{"heard a", "heard b"}) {
		t.Errorf("said %q", got)
	}
	p.CloseStdin()
	<-p.Exited()
	if p.Err() != nil || p.WasKilled() {
		t.Errorf("it ended with %v, killed: %v", p.Err(), p.WasKilled())
	}
}

func TestKill(t *testing.T) {
	p := testproc.Start(t, "echo", testproc.Self(echo+"=1"))
	p.Signal(syscall.SIGSTOP)
	if p.HasExited() {
		t.Error("one that is paused has exited")
	}
	p.Kill()
	if p.Err() == nil || !p.WasKilled() {
		t.Errorf("it ended with %v, killed: %v", p.Err(), p.WasKilled())
	}
}

// fatal ends a test as Fatalf does, and keeps why.
type fatal struct {
	testing.TB

	why string
}

func (f *fatal) Fatalf(format string, args ...any) {
	f.why = fmt.Sprintf(format, args...)
	panic(f)
}

func TestAwaitEndsWithTheProcess(t *testing.T) {
	f := &fatal{TB: t}
	p := testproc.Start(f, "one", exec.Command("echo", "this"))
	defer func() {
		if recover() != f || !strings.Contains(f.why, "one has ended and not said that") {
			t.Errorf("Await ended with %q", f.why)
		}
	}()
	p.Await("that", func(line string) bool { return line == "that" })
}

func TestStartReading(t *testing.T) {
	var text []byte
	p := testproc.StartReading(t, "one", exec.Command("echo", "this"), func(r io.Reader) { text, _ = io.ReadAll(r) })
	<-p.Exited()
	if string(text) != "this\n" {
		t.Errorf("read %q", text)
	}
}
