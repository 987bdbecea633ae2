package once_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/testmetric"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/once"
)

// TestPurgeWhenClocksChange: requests are kept for as long as they are to be where the time zone
// of the session has summer time, also when it begins and when it ends.
func TestPurgeWhenClocksChange(t *testing.T) {
	t.Parallel()
	zone := summerTime(t)
	for name, begun := range map[string]time.Time{
		"forward": time.Date(2026, 3, 29, 0, 58, 0, 0, time.UTC),  // 1:58 in Berlin
		"back":    time.Date(2026, 10, 25, 0, 58, 0, 0, time.UTC), // 2:58 in Berlin, for the first time
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := teststack.MySQL(t)
			testdb.WantNil(t, once.Migrate(bg, testdb.OpenMySQL(t, dsn)))
			at := func(d time.Duration) *gorm.DB {
				return testdb.OpenMySQL(t, fmt.Sprintf("%s&time_zone=%%27%s%%27&timestamp=%d", dsn, zone, begun.Add(d).Unix()))
			}
			serve := func(db *gorm.DB, id string) error {
				r := once.Request{Operation: "x", Scope: once.Anyone, ID: id}
				return guardtest.New(t, db).Do(bg, "k", func(context.Context, *gorm.DB) error { return nil }, guard.For(r))
			}
			testdb.WantNil(t, serve(at(-90*time.Minute), "old"))
			testdb.WantNil(t, serve(at(0), "new"))
			after := at(4 * time.Minute) // an hour and 4 minutes by the clocks, or 56 minutes before
			p, err := once.NewPurger(after, once.PurgerConfig{Keep: time.Hour, Every: time.Second})
			testdb.WantNil(t, err)
			testwait.Until(t, "the old one is purged", func() bool { return count(t, after, "belay_once") == 1 })
			testdb.WantNil(t, p.Close(bg))
			if err := serve(after, "new"); !errors.Is(err, guard.ErrDuplicate) {
				t.Errorf("a request of 4 minutes ago: %v, want ErrDuplicate", err)
			}
			if age := testmetric.Sum(t, p, "belay_once_oldest_seconds", "table", "belay_once"); age != 240 {
				t.Errorf("the oldest request is %v seconds old, want 240", age)
			}
		})
	}
}

// summerTime gives the server a time zone of the rules of Berlin in 2026, and returns its name.
func summerTime(t *testing.T) string {
	t.Helper()
	name := fmt.Sprintf("belay_%x", rand.Uint64())
	err := testdb.OpenMySQL(t, teststack.MySQL(t)).Connection(func(db *gorm.DB) error {
		var errs []error
		for _, statement := range []string{
			"INSERT INTO mysql.time_zone (Use_leap_seconds) VALUES ('N')",
			"SET @zone = LAST_INSERT_ID()",
			"INSERT INTO mysql.time_zone_name (Name, Time_zone_id) VALUES ('" + name + "', @zone)",
			"INSERT INTO mysql.time_zone_transition_type (Time_zone_id, Transition_type_id, `Offset`, Is_DST, Abbreviation) VALUES (@zone, 0, 3600, 0, 'CET'), (@zone, 1, 7200, 1, 'CEST')",
			"INSERT INTO mysql.time_zone_transition (Time_zone_id, Transition_time, Transition_type_id) VALUES (@zone, 0, 0), (@zone, 1774746000, 1), (@zone, 1792890000, 0)",
		} {
			errs = append(errs, db.Exec(statement).Error)
		}
		return errors.Join(errs...)
	})
	testdb.WantNil(t, err)
	return name
}
