package chaos_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"
)

// process is a worker in a process of its own: this test binary again.
type process struct {
	t      *report
	name   string
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	record *record // to be read when it has exited
	exited chan struct{}
	err    error
}

// workerName tells the test binary that it is a worker.
const workerName = "BELAY_CHAOS_WORKER"

func startWorker(t *report, name string, env []string) *process {
	t.Helper()
	p := &process{t: t, name: name, cmd: exec.Command(os.Args[0]), record: newRecord(name), exited: make(chan struct{})}
	p.cmd.Env = slices.Concat(os.Environ(), env, []string{workerName + "=" + name})
	log := t.file(name + ".log")
	defer log.Close() // the worker has it
	p.cmd.Stderr = log
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	journal := newJournalFile(t, name)
	go func() {
		for l := range scan[line](io.TeeReader(stdout, journal)) {
			p.record.add(l)
		}
		journal.close(t)
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		p.signal(syscall.SIGKILL)
		<-p.exited
	})
	return p
}

// wiped notes in the worker that the lock on key was wiped.
func (p *process) wiped(key string) { _, _ = fmt.Fprintln(p.stdin, key) }

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// dismiss has the worker end.
func (p *process) dismiss() { _ = p.stdin.Close() }

// finish waits until the worker has ended.
func (p *process) finish() {
	p.t.Helper()
	select {
	case <-p.exited:
		if p.err != nil {
			p.t.Errorf("%s: %v", p.name, p.err)
		}
	case <-time.After(time.Minute):
		p.t.Errorf("%s does not end", p.name)
		p.signal(syscall.SIGQUIT) // its log says where it is
		<-p.exited
	}
}
