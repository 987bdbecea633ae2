package cost_test

import (
	"strings"
	"testing"
)

// TestNewRequestIsNamed: whoever makes an operation dearer reads by what.
func TestNewRequestIsNamed(t *testing.T) {
	begin, insert, commit := request{"sql", "BEGIN", false}, request{"sql", "INSERT", false}, request{"sql", "COMMIT", false}
	held := counts{operation: "Do", sent: []request{begin, insert, commit}, allocations: 100, fsyncs: 1}
	dearer := func(more request) counts {
		c := held
		c.sent = []request{begin, insert, more, commit}
		return c
	}
	for name, c := range map[string]struct {
		counts counts
		want   []string // parts of the text; none = nothing is wrong
	}{
		"at its ceilings":       {held, nil},
		"a statement":           {dearer(request{"sql", "SELECT ?", false}), []string{"4 trips, at most 3", "4 statements, at most 3", "new: sql SELECT ?", "\tsql INSERT\n\tsql SELECT ?\n\tsql COMMIT\n"}},
		"the same once more":    {dearer(insert), []string{"4 statements, at most 3", "new: sql INSERT"}},
		"a command on its way":  {dearer(request{"redis", "GET", true}), []string{"1 commands, at most 0", "new: +redis GET"}},
		"one less":              {counts{"Do", []request{begin, commit}, 100, 1}, []string{"2 trips, so the ceiling of 3 can come down", "no more: sql INSERT"}},
		"allocations":           {counts{"Do", held.sent, 106, 1}, []string{"106 allocations, at most 100"}},
		"some allocations":      {counts{"Do", held.sent, 105, 1}, nil},
		"few allocations":       {counts{"Do", held.sent, 94, 1}, []string{"94 allocations, so the ceiling of 100 can come down"}},
		"an fsync":              {counts{"Do", held.sent, 100, 2}, []string{"2 fsyncs, at most 1"}},
		"not counted elsewhere": {counts{"Do", held.sent, 0, -1}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.counts.differs(held)
			if len(c.want) == 0 && got != "" {
				t.Errorf("it is wrong: %s", got)
			}
			for _, part := range c.want {
				if !strings.Contains(got, part) {
					t.Errorf("got %q, which lacks %q", got, part)
				}
			}
		})
	}
}
