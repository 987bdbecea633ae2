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
		none       = dbguard.Evidence{Protected: true}
		same       = dbguard.Evidence{Protected: true, Found: true}
		differ     = dbguard.Evidence{Protected: true, Found: true, Differ: true}
		contradict = dbguard.Evidence{Protected: true, Contradicts: true}
		expected   = dbguard.Evidence{Protected: true, Found: true, Expected: true}
		own        = dbguard.Evidence{Protected: true, Found: true, Own: true}
		before     = dbguard.Evidence{Protected: true, Found: true, Contradicts: true}
		unread     = dbguard.Evidence{Protected: true, Unread: true}

		ownDiffers      = dbguard.Evidence{Protected: true, Found: true, Own: true, Differ: true}
		oneOfSeveral    = dbguard.Evidence{Protected: true, Found: true, Differ: true, Several: true}
		expectedDiffers = dbguard.Evidence{Protected: true, Found: true, Expected: true, Differ: true}
	)
	tests := []struct {
		name   string
		found  dbguard.Evidence
		kind   dbguard.Kind
		dbOnly bool
		lapsed bool
		holder notify.Relation
		want   verdict
	}{
		{"nothing found", none, dbguard.Duplicate, false, false, notify.HolderSelf, business},
		{"nothing found, lock gone", none, dbguard.Duplicate, false, true, notify.HolderNone, business},
		{"row missing at an update", none, dbguard.Stale, false, false, notify.HolderSelf, business},

		{"no lock, duplicate", differ, dbguard.Duplicate, true, false, notify.HolderOther, duplicate},
		{"no lock, contradiction", contradict, dbguard.Stale, true, false, notify.HolderUnknown, stale},
		{"no lock, own row", own, dbguard.Duplicate, true, false, notify.HolderUnknown, business},
		{"no lock, as expected", expected, dbguard.Stale, true, false, notify.HolderUnknown, business},
		{"no lock, nothing found", none, dbguard.Stale, true, false, notify.HolderUnknown, business},
		{"no lock, not read", unread, dbguard.Duplicate, true, false, notify.HolderUnknown, duplicate},
		{"no lock, stale", differ, dbguard.Stale, true, false, notify.HolderOther, stale},

		{"contradiction", contradict, dbguard.Stale, false, false, notify.HolderSelf, overlap},
		{"contradiction of an earlier look, duplicate", before, dbguard.Duplicate, false, false, notify.HolderSelf, overlap},
		{"contradiction of an earlier look, lock gone", before, dbguard.Stale, false, true, notify.HolderNone, overlap},
		{"row gone that had been seen", contradict, dbguard.Duplicate, false, false, notify.HolderUnknown, overlap},
		{"own row that another wrote", ownDiffers, dbguard.Stale, false, false, notify.HolderSelf, overlap},
		{"as expected now, but not before", expectedDiffers, dbguard.Stale, false, false, notify.HolderSelf, overlap},
		{"reads differ, lock ours", differ, dbguard.Duplicate, false, false, notify.HolderSelf, overlap},
		{"reads differ, lock another's", differ, dbguard.Duplicate, false, false, notify.HolderOther, overlap},
		{"reads differ, nobody's lock", differ, dbguard.Stale, false, true, notify.HolderNone, overlap},
		{"reads differ, unknown", differ, dbguard.Stale, false, false, notify.HolderUnknown, overlap},

		{"reads differ, one row of several, lock ours", oneOfSeveral, dbguard.Duplicate, false, false, notify.HolderSelf, business},
		{"reads differ, one row of several, lock not asked", oneOfSeveral, dbguard.Stale, false, false, notify.HolderUnknown, business},
		{"reads differ, one row of several, lock another's", oneOfSeveral, dbguard.Stale, false, false, notify.HolderOther, overlap},
		{"reads differ, one row of several, lock gone", oneOfSeveral, dbguard.Duplicate, false, false, notify.HolderNone, overlap},
		{"reads differ, one row of several, lease lapsed", oneOfSeveral, dbguard.Duplicate, false, true, notify.HolderSelf, overlap},
		{"as expected", expected, dbguard.Stale, false, false, notify.HolderSelf, business},
		{"as expected, lock gone", expected, dbguard.Stale, false, true, notify.HolderNone, business},
		{"own row", own, dbguard.Duplicate, false, false, notify.HolderSelf, business},
		{"own row, lock gone", own, dbguard.Duplicate, false, false, notify.HolderOther, business},

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
