package chaos_test

import (
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/belaygo/belay/internal/testproc"
)

// process is a worker in a process of its own: this test binary again.
type process struct {
	*testproc.Process

	t      *report
	record *record // to be read when it has exited
}

// olderName is the variable that names this test as it was built of an older commit, and
// olderMonitorName that of its guard-monitor. Half of the workers are of the one then, and the monitor
// is the other until it is killed: it is upgraded in the middle of the run. scripts/chaos builds both.
const olderName, olderMonitorName = "BELAY_CHAOS_OLDER", "BELAY_CHAOS_OLDER_MONITOR"

// isOlder reports whether a worker is of the older build: two of four, of either policy.
func isOlder(name string) bool {
	n, err := strconv.Atoi(strings.TrimPrefix(name, "w"))
	return err == nil && n/2%2 == 1
}

// workerName tells the test binary that it is a worker.
const workerName = "BELAY_CHAOS_WORKER"

func startWorker(t *report, name string, env []string) *process {
	t.Helper()
	p := &process{t: t, record: newRecord(name)}
	cmd := testproc.Self(slices.Concat(env, []string{workerName + "=" + name})...)
	if older := os.Getenv(olderName); older != "" && isOlder(name) {
		cmd.Path, p.record.older = older, true
	}
	log := t.file(name + ".log")
	defer log.Close() // the worker has it
	cmd.Stderr = log
	journal := newJournalFile(t, name)
	p.Process = testproc.StartReading(t, name, cmd, func(stdout io.Reader) {
		for l := range scan[line](io.TeeReader(stdout, journal)) {
			p.record.add(l)
		}
		journal.close(t)
	})
	return p
}

// wiped notes in the worker that the lock on key was wiped.
func (p *process) wiped(key string) { p.Say(key) }

// dismiss has the worker end.
func (p *process) dismiss() { p.CloseStdin() }

// finish waits until the worker has ended.
func (p *process) finish() {
	p.t.Helper()
	select {
	case <-p.Exited():
		if err := p.Err(); err != nil {
			p.t.Errorf("%s: %v", p.Name(), err)
		}
	case <-time.After(time.Minute):
		p.t.Errorf("%s does not end", p.Name())
		p.Signal(syscall.SIGQUIT) // its log says where it is
		<-p.Exited()
	}
}
