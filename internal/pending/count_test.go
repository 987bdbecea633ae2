package pending_test

import (
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/pending"
	"github.com/belaygo/belay/internal/sqldb"
	"github.com/belaygo/belay/internal/testdb"
)

// TestCount: requests whose call may run or be repeated, that are answered, and that are undecided.
func TestCount(t *testing.T) {
	t.Parallel()
	testdb.EachWithPostgres(t, func(t *testing.T, open func(...gorm.Option) *gorm.DB) {
		db := open()
		pool, err := db.DB()
		testdb.WantNil(t, err)
		d, _ := sqldb.Of(db.Name())
		in := sqldb.New(pool, d)
		testdb.WantNil(t, pending.Migrate(t.Context(), in))
		none, err := pending.Count(t.Context(), in)
		testdb.WantNil(t, err)
		if want := (pending.Backlog{Table: none.Table}); none != want || none.Table == "" {
			t.Errorf("an empty table counts as %+v", none)
		}
		var now int64
		testdb.WantNil(t, in.QueryRow(t.Context(), "SELECT "+in.Now(time.Millisecond), nil, &now))
		hour := time.Hour.Milliseconds()
		for n, row := range []struct{ since, lease, until, answered int64 }{
			{now - hour, now + hour, now - hour, 0}, // its last call may run
			{now - 2*hour, 0, now + hour, 0},
			{now - 9*hour, 0, now - hour, 1},
			{now - 8*hour, 0, now - 5*hour, 0},
			{now - 7*hour, now - hour, now - 4*hour, 0},
		} {
			_, err := in.Exec(t.Context(), "INSERT INTO belay_pending (request, attempt, print, operation, since_ms, lease_ms, until_ms, tries, answered) VALUES (?, 1, ?, 'pay', ?, ?, ?, 2, ?)",
				append(make([]byte, 31), byte(n)), []byte("p"), row.since, row.lease, row.until, row.answered)
			testdb.WantNil(t, err)
		}
		b, err := pending.Count(t.Context(), in)
		testdb.WantNil(t, err)
		hours := func(d time.Duration) time.Duration { return d.Truncate(time.Hour) }
		if b.Pending != 5 || b.Undecided != 2 || hours(b.Oldest) != 9*time.Hour || hours(b.OldestUndecided) != 5*time.Hour || b.Table != none.Table {
			t.Errorf("counted %+v", b)
		}
		for limit, want := range map[int][]byte{1: {4}, 9: {4, 3}} {
			rows, err := pending.Undecided(t.Context(), in, limit)
			testdb.WantNil(t, err)
			var got []byte
			for _, r := range rows {
				got = append(got, r.Request[31])
				if !r.Undecided || r.Operation != "pay" || r.Tries != 2 || r.Since.UnixMilli() > now-7*hour || len(r.ID()) != 32 {
					t.Errorf("row %+v", r)
				}
			}
			if string(got) != string(want) {
				t.Errorf("undecided are %v, want %v", got, want)
			}
		}
	})
}
