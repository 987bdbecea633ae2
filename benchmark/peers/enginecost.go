package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/belaygo/belay/benchmark/internal/measure"
	"github.com/belaygo/belay/internal/wait"
)

// costCycles is how many cycles of one caller are counted.
const costCycles = 200

// cost counts the requests and the fsyncs of one caller's cycles.
func (e engine) cost(ctx context.Context, keys string) (c engineCost, err error) {
	o, err := e.open(ctx)
	if err != nil {
		return c, err
	}
	defer o.close()
	c.Engine = e.name
	run := func() error {
		for i := range costCycles {
			if err := o.cycle(ctx, keys+":cost", fmt.Sprint("me:", i)); err != nil {
				return err
			}
		}
		return nil
	}
	if err := run(); err != nil { // connections are opened, scripts are loaded
		return c, err
	}
	if c.Requests, err = o.countRequests(ctx, run); err != nil {
		return c, err
	}
	c.Fsyncs, err = o.countFsyncs(ctx, run)
	return c, err
}

func (o *opened) countRequests(ctx context.Context, run func() error) (*float64, error) {
	if o.requests == nil {
		return nil, run()
	}
	before, err1 := o.requests(ctx)
	err2 := run()
	after, err3 := o.requests(ctx)
	n := float64(after-before) / costCycles
	return &n, errors.Join(err1, err2, err3)
}

// countFsyncs has strace count what the servers ask of their disks.
func (o *opened) countFsyncs(ctx context.Context, run func() error) (*float64, error) {
	pids, err := o.processes()
	if err != nil || len(pids) == 0 {
		return nil, err
	}
	args := []string{"-f", "-q", "-e", "trace=fsync,fdatasync,msync,sync_file_range", "-e", "signal=none"}
	for _, pid := range pids {
		args = append(args, "-p", strconv.Itoa(pid))
	}
	trace := exec.CommandContext(ctx, "strace", args...)
	var out bytes.Buffer
	trace.Stderr = &out
	trace.Cancel = func() error { return trace.Process.Signal(os.Interrupt) }
	if err := trace.Start(); err != nil {
		return nil, err
	}
	if err := awaitTraced(ctx, pids); err != nil {
		return nil, err
	}
	if err := run(); err != nil {
		return nil, err
	}
	_ = trace.Process.Signal(os.Interrupt)
	_ = trace.Wait() // strace ends by the signal that it got
	n := float64(countCalls(out.String())) / costCycles
	return &n, nil
}

// awaitTraced waits until strace follows the processes.
func awaitTraced(ctx context.Context, pids []int) error {
	for _, pid := range pids {
		for !traced(pid) {
			if err := wait.Sleep(ctx, 10*time.Millisecond, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

func traced(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err != nil || !strings.Contains(string(text), "TracerPid:\t0\n")
}

// countCalls counts the calls in what strace wrote: one that is interrupted by another
// thread's takes two lines.
func countCalls(text string) (n int) {
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		if l := lines.Text(); strings.Contains(l, "sync") && strings.Contains(l, "(") && !strings.Contains(l, "resumed>") {
			n++
		}
	}
	return n
}

// processes returns the servers' processes, and those that these have started.
func (o *opened) processes() (pids []int, err error) {
	for _, file := range o.pidFiles {
		text, err := os.ReadFile(file) //nolint:gosec // the user names its folder
		if err != nil {
			return nil, err
		}
		first, _, _ := strings.Cut(strings.TrimSpace(string(text)), " ") // scripts/stack notes more
		pid, err := strconv.Atoi(first)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		pids = append(pids, measure.Tree(pid)...)
	}
	return pids, nil
}
