package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belaygo/belay/benchmark/internal/cost"
	"github.com/belaygo/belay/benchmark/internal/measure"
	"github.com/belaygo/belay/benchmark/internal/result"
	"github.com/belaygo/belay/benchmark/internal/stage"
)

func TestOutputRemovesOnlyWhatItMade(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	theirs, link := filepath.Join(dir, "theirs"), filepath.Join(dir, "link")
	if err := os.WriteFile(theirs, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(theirs, link); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		path string
		text string
		kept bool
	}{
		{"", "", false}, {"", "{}", true},
		{filepath.Join(dir, "new"), "", false}, {filepath.Join(dir, "filled"), "{}", true},
		{theirs, "", true}, {link, "", true},
	} {
		out, err := openOutput(tc.path)
		if err != nil {
			t.Errorf("%q: %v", tc.path, err)
			continue
		}
		if tc.text != "" {
			if err := measure.WriteJSON(out.path, tc.text); err != nil {
				t.Error(err)
			}
		}
		out.discard()
		if _, err := os.Lstat(out.path); (err == nil) != tc.kept {
			t.Errorf("%q with %q in it: %v, want it kept: %t", tc.path, tc.text, err, tc.kept)
		}
	}
	if _, err := openOutput(filepath.Join(dir, "none", "x")); !errors.Is(err, errUsage) {
		t.Errorf("a folder that is not there: %v", err)
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
		err := finish(tc.ctx, tc.run, output{path: "out.json"}, tc.err)
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
	out, err := openIfNamed(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := showCosts([]cost.Cost{{Method: "belay", Case: "first", Rows: 1000}}, out, failed); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
	if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), `"belay"`) {
		t.Errorf("%s, %v", text, err)
	}
	if err := showCosts(nil, output{}, failed); !errors.Is(err, failed) {
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
