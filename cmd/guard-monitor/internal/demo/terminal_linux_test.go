package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal is a terminal of the given width, in which a demo runs.
type terminal struct {
	t    *testing.T
	pty  *os.File
	cmd  *exec.Cmd
	read sync.WaitGroup

	mu  sync.Mutex
	out bytes.Buffer
}

// openTerminal returns both ends of a new terminal: the one that shows it, and
// the one that a program writes to.
func openTerminal(t *testing.T, columns uint16) (pty, tty *os.File) {
	t.Helper()
	pty, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(pty.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	err = errors.Join(err, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0),
		unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: columns}))
	settings, getErr := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err := errors.Join(err, getErr); err != nil {
		t.Fatal(err)
	}
	settings.Lflag &^= unix.ECHO // what is typed is not among what a program writes
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, settings); err != nil {
		t.Fatal(err)
	}
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return pty, tty
}

func TestTerminals(t *testing.T) {
	for _, tt := range []struct {
		name           string
		columns        uint16
		env            map[string]string
		lively, colour bool
		width          int
	}{
		{"usual", 90, map[string]string{"TERM": "xterm"}, true, true, 90},
		{"NO_COLOR", 90, map[string]string{"TERM": "xterm", "NO_COLOR": "1"}, true, false, 90},
		{"dumb", 90, map[string]string{"TERM": "dumb"}, false, false, plainWidth},
		{"narrow", 5, nil, true, true, minWidth},
		{"wide", 300, nil, true, true, maxWidth},
		{"of no known width", 0, nil, true, true, plainWidth},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pty, tty := openTerminal(t, tt.columns)
			defer pty.Close()
			defer tty.Close()
			s := newScreen(tty, func(name string) string { return tt.env[name] })
			if s.lively != tt.lively || s.colour != tt.colour || s.width() != tt.width {
				t.Errorf("lively %v, colour %v, width %d", s.lively, s.colour, s.width())
			}
		})
	}
}

func startInTerminal(t *testing.T, columns uint16, args ...string) *terminal {
	t.Helper()
	pty, tty := openTerminal(t, columns)
	defer tty.Close()
	x := &terminal{t: t, pty: pty, cmd: demoCommand(t, args...)}
	x.cmd.Env = append(slices.DeleteFunc(x.cmd.Env, func(v string) bool { return strings.HasPrefix(v, "NO_COLOR=") }), "TERM=xterm")
	x.cmd.Stdin, x.cmd.Stdout, x.cmd.Stderr = tty, tty, tty
	x.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := x.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	x.read.Go(func() {
		buffer := make([]byte, 4096)
		for {
			n, err := pty.Read(buffer)
			x.mu.Lock()
			x.out.Write(buffer[:n])
			x.mu.Unlock()
			if err != nil { // EIO when nobody has the other end any more
				return
			}
		}
	})
	return x
}

func (x *terminal) text() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.out.String()
}

func (x *terminal) await(text string) {
	x.t.Helper()
	if err := until(x.t.Context(), text, func() (bool, error) { return strings.Contains(x.text(), text), nil }); err != nil {
		x.t.Fatalf("%v, the terminal has:\n%s", err, x.text())
	}
}

// wait waits for the end and returns the exit status.
func (x *terminal) wait() int {
	x.t.Helper()
	var exit *exec.ExitError
	if err := x.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		x.t.Fatal(err)
	}
	x.read.Wait()
	x.pty.Close()
	return x.cmd.ProcessState.ExitCode()
}

func TestInTerminal(t *testing.T) {
	x := startInTerminal(t, 60)
	if status := x.wait(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	out := x.text()
	if !strings.Contains(out, "\x1b[1m1. The lock") || !strings.Contains(out, "\r  [") {
		t.Error("no colour, or no line that changes")
	}
	for line := range strings.Lines(strings.ReplaceAll(out, "\r", "\n")) {
		if shown := withoutColour(strings.ReplaceAll(line, eraseRest, "")); len([]rune(strings.TrimSpace(shown))) > 60 &&
			!strings.HasPrefix(shown, "belay demo: ") {
			t.Errorf("line is wider than the terminal: %q", shown)
		}
	}
	wantStory(t, shown(out), slices.Concat(beginning, failureHere, ending))
}

// shown is what the lines of a terminal look like in the end.
func shown(out string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(strings.ReplaceAll(out, "\r\n", "\n"), "\n") {
		parts := strings.Split(line, "\r")
		b.WriteString(strings.ReplaceAll(withoutColour(parts[len(parts)-1]), eraseRest, "") + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Ctrl-C while a line changes leaves the terminal as it was.
func TestInterrupt(t *testing.T) {
	x := startInTerminal(t, 80)
	x.await("0 sold")
	if _, err := x.pty.WriteString("\x03"); err != nil {
		t.Fatal(err)
	}
	status := x.wait()
	out := shown(x.text())
	if status != 1 || !strings.HasSuffix(out, "\nbelay demo: stopped before the sale was over: interrupt signal received\n") {
		t.Errorf("exit status %d, the terminal has:\n%s", status, out)
	}
	if strings.Count(x.text(), "\x1b[0m")*2 != strings.Count(x.text(), "\x1b[")-strings.Count(x.text(), eraseRest) {
		t.Errorf("colour is left on: %q", x.text())
	}
}
