package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belaygo/belay/benchmark/internal/cost"
	"github.com/belaygo/belay/benchmark/internal/result"
	"github.com/belaygo/belay/benchmark/internal/stage"
)

func TestCheckOutputChangesNothing(t *testing.T) {
	dir := t.TempDir()
	theirs, link := filepath.Join(dir, "theirs"), filepath.Join(dir, "link")
	if err := os.WriteFile(theirs, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(theirs, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", filepath.Join(dir, "new"), theirs, link, os.DevNull} {
		if err := checkOutput(path); err != nil {
			t.Errorf("%q: %v", path, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("the folder has %v, %v; want what was there", left, err)
	}
	if text, err := os.ReadFile(theirs); err != nil || string(text) != "text" {
		t.Errorf("the file that was there has %q, %v", text, err)
	}
	for _, path := range []string{filepath.Join(dir, "none", "x"), dir} {
		if err := checkOutput(path); !errors.Is(err, errUsage) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestFinish(t *testing.T) {
	failed := errors.New("it broke")
	methods := []result.Method{result.Combine("belay", "insert", make([]result.Round, 1))}
	whole, part, nothing := &result.Run{Complete: true, Methods: methods}, &result.Run{Methods: methods}, new(result.Run)
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tc := range map[string]struct {
		ctx  context.Context
		run  *result.Run
		err  error
		want string
	}{
		"complete":                      {t.Context(), whole, nil, ""},
		"complete, Ctrl-C at the end":   {interrupted, whole, nil, ""},
		"faults":                        {t.Context(), whole, stage.ErrWrong, stage.ErrWrong.Error()},
		"faults, Ctrl-C at the end":     {interrupted, whole, stage.ErrWrong, stage.ErrWrong.Error()},
		"error":                         {t.Context(), part, failed, "it broke; what was measured so far is in out.json"},
		"error at first":                {t.Context(), nothing, failed, "it broke"},
		"error while it is taken down":  {interrupted, whole, failed, "it broke"},
		"interrupted":                   {interrupted, part, failed, "interrupted; what was measured so far is in out.json (it broke)"},
		"interrupted before all rounds": {interrupted, nothing, failed, "interrupted before anything was measured (it broke)"},
	} {
		err := finish(tc.ctx, tc.run, "out.json", tc.err)
		if !errors.Is(err, tc.err) {
			t.Errorf("%s: %v is not %v", name, err, tc.err)
		}
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestCostsAreKeptAfterAnError(t *testing.T) {
	failed := errors.New("it broke")
	path := filepath.Join(t.TempDir(), "out.json")
	if err := showCosts([]cost.Cost{{Method: "belay", Case: "first", Rows: 1000}}, path, failed); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
	if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), `"belay"`) {
		t.Errorf("%s, %v", text, err)
	}
	if err := showCosts(nil, path, failed); !errors.Is(err, failed) {
		t.Errorf("nothing measured: %v", err)
	}
}

func TestVerdict(t *testing.T) {
	of := func(method string, rows int64, statements float64) cost.Cost {
		return cost.Cost{Method: method, Case: "first", Rows: rows, Operations: 400, Statements: statements}
	}
	for want, costs := range map[string][]cost.Cost{
		"":                                      {of("belay", 1000, 3)},
		"none; to reach: at most 1.15: reached": {of("belay", 1000, 3), of("belay", 2000, 3)},
		"1.10, in statements of belay, first; to reach: at most 1.15: reached": {of("belay", 1000, 3), of("belay", 2000, 3.3)},
		"2.00, in statements of belay, first; to reach: at most 1.15: missed":  {of("belay", 1000, 3), of("belay", 2000, 6)},
	} {
		if want != "" {
			want = "Belay's greatest growth: " + want
		}
		if got := verdict(costs); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := verdict([]cost.Cost{of("naive", 1000, 3), of("naive", 2000, 6)}); got != "" {
		t.Errorf("of other methods alone: %q", got)
	}
}
