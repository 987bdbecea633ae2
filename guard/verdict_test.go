package guard

import (
	"testing"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/notify"
)

// TestJudge is the whole table of verdicts: each rule, and that an earlier one
// outweighs those after it.
func TestJudge(t *testing.T) {
	var (
		none     = dbguard.Evidence{Protected: true}
		same     = dbguard.Evidence{Protected: true, Found: true}
		changed  = dbguard.Evidence{Protected: true, Found: true, Changed: true}
		missing  = dbguard.Evidence{Protected: true, Changed: true}
		expected = dbguard.Evidence{Protected: true, Found: true, Expected: true}
		unread   = dbguard.Evidence{Protected: true, Unread: true}

		shared          = dbguard.Evidence{Protected: true, Found: true, Changed: true, Shared: true}
		behind          = dbguard.Evidence{Protected: true, Found: true, Changed: true, Behind: true}
		expectedDiffers = dbguard.Evidence{Protected: true, Found: true, Expected: true, Changed: true}
	)
	tests := []struct {
		name   string
		found  dbguard.Evidence
		kind   dbguard.Kind
		dbOnly bool
		lapsed bool
		holder notify.Holder
		want   verdict
	}{
		{"nothing found", none, dbguard.Duplicate, false, false, notify.HolderSelf, business},
		{"nothing found, lock gone", none, dbguard.Duplicate, false, true, notify.HolderNone, business},
		{"row missing at an update", none, dbguard.Stale, false, false, notify.HolderSelf, business},

		{"no lock, duplicate", changed, dbguard.Duplicate, true, false, notify.HolderOther, duplicate},
		{"no lock, row gone", missing, dbguard.Stale, true, false, notify.HolderUnknown, stale},
		{"no lock, as expected", expected, dbguard.Stale, true, false, notify.HolderUnknown, business},
		{"no lock, nothing found", none, dbguard.Stale, true, false, notify.HolderUnknown, business},
		{"no lock, not read", unread, dbguard.Duplicate, true, false, notify.HolderUnknown, duplicate},
		{"no lock, stale", changed, dbguard.Stale, true, false, notify.HolderOther, stale},

		{"row gone", missing, dbguard.Stale, false, false, notify.HolderSelf, overlap},
		{"row gone that had been seen", missing, dbguard.Duplicate, false, false, notify.HolderUnknown, overlap},
		{"as expected now, but not before", expectedDiffers, dbguard.Stale, false, false, notify.HolderSelf, overlap},
		{"reads changed, lock ours", changed, dbguard.Duplicate, false, false, notify.HolderSelf, overlap},
		{"reads changed, lock another's", changed, dbguard.Duplicate, false, false, notify.HolderOther, overlap},
		{"reads changed, nobody's lock", changed, dbguard.Stale, false, true, notify.HolderNone, overlap},
		{"reads changed, unknown", changed, dbguard.Stale, false, false, notify.HolderUnknown, overlap},

		{"reads changed, another key, lock ours", shared, dbguard.Duplicate, false, false, notify.HolderSelf, overtaken},
		{"reads changed, another key, lock not asked", shared, dbguard.Stale, false, false, notify.HolderUnknown, overtaken},
		{"reads changed, another key, lock another's", shared, dbguard.Stale, false, false, notify.HolderOther, overlap},
		{"reads changed, another key, lock gone", shared, dbguard.Duplicate, false, false, notify.HolderNone, overlap},
		{"reads changed, another key, lease lapsed", shared, dbguard.Duplicate, false, true, notify.HolderSelf, overlap},
		{"reads changed, server behind, lock ours", behind, dbguard.Duplicate, false, false, notify.HolderSelf, duplicate},
		{"reads changed, server behind, lock not asked", behind, dbguard.Stale, false, false, notify.HolderUnknown, stale},
		{"reads changed, server behind, lock another's", behind, dbguard.Duplicate, false, false, notify.HolderOther, overlap},
		{"reads changed, server behind, lease lapsed", behind, dbguard.Stale, false, true, notify.HolderSelf, overlap},
		{"as expected", expected, dbguard.Stale, false, false, notify.HolderSelf, business},
		{"as expected, lock gone", expected, dbguard.Stale, false, true, notify.HolderNone, business},

		{"same row, lock another's", same, dbguard.Duplicate, false, false, notify.HolderOther, lost},
		{"same row, nobody's lock", same, dbguard.Stale, false, false, notify.HolderNone, lost},
		{"same row, lease lapsed", same, dbguard.Duplicate, false, true, notify.HolderSelf, lost},
		{"same row, lease lapsed, unknown", same, dbguard.Duplicate, false, true, notify.HolderUnknown, lost},
		{"not read, lock ours", unread, dbguard.Duplicate, false, false, notify.HolderSelf, duplicate},
		{"not read, nobody's lock", unread, dbguard.Duplicate, false, false, notify.HolderNone, lost},

		{"repeat of an insert", same, dbguard.Duplicate, false, false, notify.HolderSelf, duplicate},
		{"repeat, not verified", same, dbguard.Duplicate, false, false, notify.HolderUnknown, duplicate},
		{"old version", same, dbguard.Stale, false, false, notify.HolderSelf, stale},
		{"old version, not verified", same, dbguard.Stale, false, false, notify.HolderUnknown, stale},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := judge(evidence{Evidence: tt.found, kind: tt.kind, locked: !tt.dbOnly, lapsed: tt.lapsed, holder: tt.holder})
			if got != tt.want {
				t.Errorf("verdict %d, want %d", got, tt.want)
			}
		})
	}
}
