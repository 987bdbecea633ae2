package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// A localLocker excludes as it should, unless it is open to all.
type localLocker struct {
	mu   sync.Mutex
	open bool
}

func (l *localLocker) acquire(_ context.Context, _ string, wait bool) (held, error) {
	switch {
	case l.open:
		return func() error { return nil }, nil
	case wait:
		l.mu.Lock()
	case !l.mu.TryLock():
		return nil, errHeld
	}
	return l.release, nil
}

func (l *localLocker) release() error { l.mu.Unlock(); return nil }
func (l *localLocker) close()         {}

func testJob(t *testing.T, workload string) job {
	t.Helper()
	now := time.Now()
	return job{
		Workload: workload, Key: "k", Callers: 4, First: 1,
		FromUS: now.UnixMicro(), ToUS: now.Add(50 * time.Millisecond).UnixMicro(),
	}
}

// answer has a worker do one job.
func answer(t *testing.T, l locker, j job) outcome {
	t.Helper()
	request, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := serve(l, strings.NewReader("run "+string(request)+"\n"), &out); err != nil {
		t.Fatal(err)
	}
	text, ok := strings.CutPrefix(out.String(), "ready\ndone ")
	if !ok {
		t.Fatalf("worker said %q", out.String())
	}
	var o outcome
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestWorkerCountsCycles(t *testing.T) {
	path, err := newArena()
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(path)
	j := testJob(t, oneKey)
	j.Arena = path
	o := answer(t, new(localLocker), j)

	if o.Cycles == 0 || o.HandOvers == 0 || o.HandOvers > o.Cycles || o.Passed < o.Cycles || o.Errors != 0 {
		t.Errorf("outcome %+v", o)
	}
	shared, err := openArena(path)
	if err != nil {
		t.Fatal(err)
	}
	defer shared.close()
	if got := shared.broken(o.Passed); got != 0 {
		t.Errorf("exclusion broken %d times", got)
	}
}

func TestBurstGrantsOne(t *testing.T) {
	if o := burst(new(localLocker), "k", 16); o.Broken != 0 || o.Errors != 0 || o.Cycles != 1 {
		t.Errorf("outcome %+v", o)
	}
	if o := burst(&localLocker{open: true}, "k", 16); o.Broken != 15 {
		t.Errorf("16 granted counts as broken %d times, want 15", o.Broken)
	}
}

type failingLocker struct{ localLocker }

var errFailing = errors.New("out of order")

func (*failingLocker) acquire(context.Context, string, bool) (held, error) { return nil, errFailing }

func TestErrorsAreCounted(t *testing.T) {
	for _, workload := range []string{ownKey, tryOneKey} {
		if o := answer(t, new(failingLocker), testJob(t, workload)); o.Errors == 0 || o.Error != errFailing.Error() {
			t.Errorf("%s: %d errors, %q", workload, o.Errors, o.Error)
		}
	}
}

func TestWorkerRefusesNonsense(t *testing.T) {
	for _, request := range []string{"", "walk", "run", "run {", `run {"workload":"none"}`} {
		var out bytes.Buffer
		if err := serve(new(localLocker), strings.NewReader(request+"\n"), &out); err != nil {
			t.Errorf("%q: %v", request, err)
		}
		if !strings.HasPrefix(out.String(), "ready\nfailed ") {
			t.Errorf("%q was answered %q", request, out.String())
		}
	}
}
