package chaos_test

import (
	"math"
	"slices"
	"testing"
)

// missed returns the call whose insert c met and took for a repeat, though that one sent its
// COMMIT when c had the lock and its snapshot already; or nil. That is an overlap, also if
// the other one died: see killedLate.
func (h *history) missed(c *call, database string, authors map[string]string) *call {
	if c.result != duplicate || c.grant == nil || h.broke(c, c.returned) || h.behind {
		return nil
	}
	i := slices.IndexFunc(h.byKey[c.key], func(other *call) bool { return other.name == authors[c.key] })
	if i < 0 || h.byKey[c.key][i].committing < c.snapshot(database) {
		return nil
	}
	return h.byKey[c.key][i]
}

// snapshot returns when the call had its snapshot. On PostgreSQL it is what the call read
// before its first write.
func (c *call) snapshot(database string) int64 {
	switch {
	case kindOf(database) != "postgres":
		return c.attempt
	case c.looked > 0:
		return c.looked
	}
	return math.MaxInt64
}

// authors returns the calls that made the rows of inserts, by their keys.
func (r rows) authors() map[string]string {
	by := make(map[string]string)
	for _, o := range r.Orders {
		by[keyOf(orders, o.No)] = o.By
	}
	for _, c := range r.Claims {
		by[keyOf(claims, c.No)] = c.By
	}
	return by
}

// TestMissed has one insert a row, and another meet it.
func TestMissed(t *testing.T) {
	for _, tt := range []struct {
		name       string
		committing int64 // of the first
		result     string
		database   string
		faults     []fault
		want       bool
	}{
		{"a repeat", 14, duplicate, "mariadb", nil, false},
		{"committed after the snapshot", 15, duplicate, "mariadb", nil, true},
		{"the same, and told", 15, "intercepted", "mariadb", nil, false},
		{"the same, and its connection broke before it could look", 15, duplicate, "mariadb", []fault{{cut, "7 at 0", 18, 19}}, false},
		{"the same, but it was the connection of another", 15, duplicate, "mariadb", []fault{{cut, "8 at 0", 18, 19}}, true},
		{"the same, on PostgreSQL: it had not looked yet", 15, duplicate, "postgres", nil, false},
		{"committed after it had looked, on PostgreSQL", 16, duplicate, "postgres", nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			key := keyOf(orders, 1)
			h := read(recordsOf(map[string][]line{
				"a": {
					{T: 9, At: called, Do: "a.0", Key: key}, {T: 10, At: begun, Do: "a.0"}, {T: 11, At: wrote, Do: "a.0"},
					{T: tt.committing, At: committing, Do: "a.0"},
				},
				"b": {
					{T: 12, At: called, Do: "b.0", Key: key}, {T: 13, At: asked, Key: key, Owner: "B"}, {T: 14, At: granted, Owner: "B"},
					{T: 15, At: begun, Do: "b.0"}, {T: 16, At: looked, Do: "b.0"}, {T: 17, At: wrote, Do: "b.0", Session: 7},
					{T: 18, At: looked, Do: "b.0"}, {T: 20, At: returned, Do: "b.0", Result: tt.result},
				},
			}), tt.faults)
			b := h.calls[slices.IndexFunc(h.calls, func(c *call) bool { return c.name == "b.0" })]
			met := h.missed(b, tt.database, rows{Orders: []Order{{No: "1", By: "a.0"}}}.authors())
			if got := met != nil; got != tt.want {
				t.Errorf("missed: %v, want %v", got, tt.want)
			}
		})
	}
}
