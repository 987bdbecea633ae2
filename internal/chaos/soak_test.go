package chaos_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/testdb"
)

// TestSoak works for the time that BELAY_SOAK says, with few faults, and looks whether
// something grows: the heap, the goroutines and the connections of each worker that lived
// from beginning to end, and of guard-monitor. All else is judged as in TestChaos.
func TestSoak(t *testing.T) {
	text := os.Getenv("BELAY_SOAK")
	if text == "" {
		t.Skip("BELAY_SOAK is not set, as to 10m or 2h: make chaos BELAY_SOAK=2h")
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("BELAY_SOAK: %v", err)
	}
	r := newReport(t)
	run, ofMonitor := chaos(r, calm, d)
	checkTrends(r, run, ofMonitor)
}

// A metric is something that may leak.
type metric struct {
	name, unit string
	limit      func(ops float64) float64 // growth for 1,000 operations that must be found in so many
	of         func(sample) float64
}

var metrics = append([]metric{
	{"heap", "KiB", heapLimit, func(s sample) float64 { return s.Heap / 1024 }},
	{"goroutines", "", oneIn1000, func(s sample) float64 { return s.Goroutines }},
}, connectionMetrics("database", "redis", "broker")...)

// oneIn1000 is one for 1,000 operations.
func oneIn1000(float64) float64 { return 1 }

// heapLimit is 8 MiB in all. So 2 MiB are about nothing, however long a run is: a process
// remembers the keys of up to 16,384 rows, say, until it has met as many.
func heapLimit(ops float64) float64 { return 8 * 1024 / (ops / 1000) }

// sampleEach is how often samples are taken.
const sampleEach = time.Second

func connectionMetrics(servers ...string) (all []metric) {
	for _, server := range servers {
		all = append(all, metric{"connections to " + server, "", oneIn1000, func(s sample) float64 { return float64(s.Conns[server]) }})
	}
	return all
}

// checkTrends judges the samples of a run, of workers and of the monitor.
func checkTrends(t *report, r run, ofMonitor []sample) {
	t.Helper()
	judged, leaks, undecided := 0, 0, 0
	judge := func(name string, samples []sample) {
		if len(samples) == 0 {
			t.Errorf("no samples of %s", name)
			return
		}
		for _, m := range metrics {
			s := series{name: name + " " + m.name, unit: m.unit, limit: m.limit(samples[len(samples)-1].ops)}
			for _, at := range samples {
				s.at = append(s.at, [2]float64{at.ops / 1000, m.of(at)})
			}
			line, f := s.judge()
			fmt.Printf("%-32s %+9.3f ± %.3f %s for 1,000 operations: %s\n", s.name, line.slope, line.margin, s.unit, f)
			judged++
			switch f {
			case leak:
				leaks++
				t.Errorf("%s grows", s.name)
			case noisy:
				undecided++
				t.Errorf("%s: %s", s.name, f)
			}
		}
	}
	for _, rec := range r.records {
		if r.livedThrough(rec) {
			judge(rec.worker, rec.samples)
		}
	}
	countCalls(r.records, ofMonitor)
	judge("guard-monitor", ofMonitor)
	fmt.Printf("belay soak: %s, seed %d: %d series, %d grow, %d too noisy to tell\n", r.head.Database, r.head.Seed, judged, leaks, undecided)
}

// livedThrough reports whether a worker was among the first and was not killed.
func (r run) livedThrough(rec *record) bool {
	n, err := strconv.Atoi(rec.worker[1:])
	return err == nil && n < workers && !slices.ContainsFunc(r.faults, func(f fault) bool { return f.Kind == kill && f.Subject == rec.worker })
}

// portsOf returns where the servers of a run listen.
func portsOf(t *report, s *server, locks []string, brokers ...string) ports {
	p := ports{portOf(testdb.AddrOf(t, s.dsn)): "database"}
	for _, addr := range locks {
		p[portOf(addr)] = "redis"
	}
	for _, addr := range brokers {
		p[portOf(addr)] = "broker"
	}
	return p
}

func portOf(addr string) string { return addr[strings.LastIndexByte(addr, ':')+1:] }

// countCalls sets in each sample how many operations all workers had begun by then.
func countCalls(records []*record, samples []sample) {
	var times []int64
	for _, r := range records {
		for _, c := range r.calls {
			times = append(times, c.called)
		}
	}
	slices.Sort(times)
	for i := range samples {
		n, _ := slices.BinarySearch(times, samples[i].at)
		samples[i].ops = float64(n)
	}
}

// sampleUntil takes samples of the monitor, which nobody may kill meanwhile, until stop is
// closed.
func (m *monitor) sampleUntil(stop <-chan struct{}, p ports) (samples []sample) {
	tick := time.NewTicker(sampleEach)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return samples
		case <-tick.C:
		}
		code, body := m.get("/metrics")
		conns, err := p.connections(strconv.Itoa(m.cmd.Process.Pid))
		if code != http.StatusOK || err != nil {
			continue
		}
		samples = append(samples, sample{
			Heap: valueOf(body, "go_memstats_heap_alloc_bytes"), Goroutines: valueOf(body, "go_goroutines"), Conns: conns, at: now(),
		})
	}
}

// valueOf returns the value of a metric without labels.
func valueOf(body []byte, name string) float64 {
	for lines := bufio.NewScanner(bytes.NewReader(body)); lines.Scan(); {
		if text, found := strings.CutPrefix(lines.Text(), name+" "); found {
			v, _ := strconv.ParseFloat(text, 64)
			return v
		}
	}
	return 0
}
