package result_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belaygo/belay/benchmark/internal/measure"
	"github.com/belaygo/belay/benchmark/internal/result"
)

func rounds(means ...float64) []result.Round {
	var all []result.Round
	for i, m := range means {
		all = append(all, result.Round{
			Round: i + 1, Times: result.Times{Mean: m, P50: m, Throughput: 1000 / m}, Results: map[string]int{"intercepted": 1, "error": i},
			Counts: result.Counts{
				Succeeded: 500, FirstLayer: 400 + i, SecondLayer: 100 - i, Duplicates: i, Published: 3, Received: 2, Killed: i == 1,
				CPU: map[string]float64{"redis": m},
			},
		})
	}
	return all
}

func TestCombine(t *testing.T) {
	m := result.Combine("belay", "insert", rounds(30, 10, 20))
	if m.Mean != 20 || m.P50 != 20 || m.FirstLayer != 401 || m.SecondLayer != 99 || m.Intercepted != 500 || m.CPU["redis"] != 20 {
		t.Errorf("medians: %+v", m)
	}
	if m.Errors != 3 || m.Duplicates != 3 || m.LockFailures != 3 || m.Published != 9 || m.Received != 6 || !m.Killed {
		t.Errorf("sums: %+v", m)
	}
	if m.Spread.Mean != [2]float64{10, 30} {
		t.Errorf("spread %v", m.Spread.Mean)
	}
	if even := result.Combine("x", "insert", rounds(10, 20)); even.Mean != 15 {
		t.Errorf("median of two is %v, want 15", even.Mean)
	}
}

func TestRatios(t *testing.T) {
	methods := []result.Method{
		result.Combine("unique-index", "insert", rounds(100, 200, 1000)),
		result.Combine("belay", "insert", rounds(50, 110, 600)),
	}
	targets := result.Ratios(methods)
	if len(targets) != 2 {
		t.Fatalf("%d ratios, want 2: the others were not run", len(targets))
	}
	if mean := targets[0]; mean.Value != 0.55 || !mean.Met {
		t.Errorf("mean %+v, want 0.55, the median of 0.5, 0.55 and 0.6", mean)
	}
	if rate := targets[1]; rate.Value < 1.8 || !rate.Met || !rate.Least {
		t.Errorf("throughput %+v", rate)
	}
	slow := []result.Method{methods[0], result.Combine("belay", "insert", rounds(70, 140, 700))}
	if got := result.Ratios(slow)[0]; got.Value != 0.7 || got.Met {
		t.Errorf("missed target %+v", got)
	}
	r := result.Run{Methods: methods}
	if v, ok := r.Between("belay", "unique-index"); !ok || v != 0.55 {
		t.Errorf("between: %v %v", v, ok)
	}
	if _, ok := r.Between("belay", "redis-lock"); ok {
		t.Error("a ratio to a method that was not run")
	}
}

func TestWriteAndRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.json")
	run := &result.Run{Kind: result.Table1, Rows: 7, Problems: []string{}, Methods: []result.Method{result.Combine("belay", "insert", rounds(1))}}
	if err := measure.WriteJSON(path, run); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{
		"method", "succeeded", "intercepted", "mean_ms", "p50_ms", "p95_ms", "p99_ms", "throughput_per_s", "first_layer", "second_layer",
		"duplicates", "oversold", "errors", "events_published", "events_received", "master_killed", "rows", "requests", "instances", "rounds",
	} {
		if !strings.Contains(string(text), `"`+field+`":`) {
			t.Errorf("the JSON lacks %s", field)
		}
	}
	got, err := result.Read(path)
	if err != nil || got.Rows != 7 || got.Methods[0].Succeeded != 500 {
		t.Errorf("read %+v, %v", got, err)
	}
}

func TestReadRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"empty": "", "other": `{"kind":"else"}`, "list": "[]"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := result.Read(path); err == nil || !strings.Contains(err.Error(), "not the JSON of a run") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := result.Read(filepath.Join(dir, "missing")); err == nil {
		t.Error("a file that is not there was read")
	}
}

// TestWriteKeepsLinks stands for devices, too: what is no regular file stays.
func TestWriteKeepsLinks(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	run := result.Run{Kind: result.Table1, Rounds: 7}
	if err := measure.WriteJSON(link, run); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Errorf("the link is replaced: %v, %v", info, err)
	}
	if got, err := result.Read(file); err != nil || got.Rounds != 7 {
		t.Errorf("%+v, %v", got, err)
	}
}
