package once

import (
	"context"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/testdb"
)

// stored stores a request and its answer, which are so many minutes old.
func stored(t *testing.T, db *gorm.DB, request string, claim, answer int) {
	t.Helper()
	ago := map[string]string{
		"mysql":    "CURRENT_TIMESTAMP(6) - INTERVAL ? MINUTE",
		"postgres": "clock_timestamp() - make_interval(mins => ?)",
		"sqlite":   "strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-' || ? || ' minutes')",
	}[db.Name()]
	testdb.WantNil(t, db.Table("belay_once").Create(map[string]any{
		"request": []byte(request), "attempt": 1, "held": 1, "operation": "test", "created_at": gorm.Expr(ago, claim),
	}).Error)
	testdb.WantNil(t, db.Table("belay_answer").Create(map[string]any{
		"request": []byte(request), "refused": 0, "codec": "json", "body": []byte("1"), "created_at": gorm.Expr(ago, answer),
	}).Error)
}

// idlePurger returns one that works when it is called.
func idlePurger(t *testing.T, db *gorm.DB) *Purger {
	t.Helper()
	testdb.WantNil(t, Migrate(context.Background(), db))
	p, err := NewPurger(db, PurgerConfig{Keep: time.Hour})
	testdb.WantNil(t, err)
	testdb.WantNil(t, p.Close(context.Background()))
	return p
}

func wantRows(t *testing.T, db *gorm.DB, want int64) {
	t.Helper()
	for _, table := range []string{"belay_once", "belay_answer"} {
		var n int64
		testdb.WantNil(t, db.Table(table).Count(&n).Error)
		if n != want {
			t.Errorf("%s has %d rows, want %d", table, n, want)
		}
	}
}

const aRequest = "0123456789abcdef0123456789abcdef"

// TestPurgerKeepsWhatWasMadeAgain: of two purgers that have found one old request the
// second does not delete it when the first has, and it was made again.
func TestPurgerKeepsWhatWasMadeAgain(t *testing.T) {
	t.Parallel()
	testdb.EachWithPostgres(t, func(t *testing.T, open func(...gorm.Option) *gorm.DB) {
		db := open()
		p := idlePurger(t, db)
		stored(t, db, aRequest, 90, 90)
		found, err := p.old(context.Background(), "belay_once", time.Hour)
		testdb.WantNil(t, err)
		testdb.WantNil(t, p.purge(context.Background()))
		wantRows(t, db, 0)
		stored(t, db, aRequest, 0, 0)
		_, err = p.delete(context.Background(), "belay_once", time.Hour, found)
		testdb.WantNil(t, err)
		wantRows(t, db, 1)
	})
}

// TestPurgerLeavesNoAnswerAlone: an answer that is younger than its request, as the
// operation took its time, goes with it.
func TestPurgerLeavesNoAnswerAlone(t *testing.T) {
	t.Parallel()
	testdb.EachWithPostgres(t, func(t *testing.T, open func(...gorm.Option) *gorm.DB) {
		db := open()
		p := idlePurger(t, db)
		stored(t, db, aRequest, 61, 59)
		testdb.WantNil(t, p.purge(context.Background()))
		wantRows(t, db, 0)
	})
}

// TestPurgerDeletesBothOrNone: a claim goes with its answer. Alone it would tell a repeat of what was
// refused that it was done.
func TestPurgerDeletesBothOrNone(t *testing.T) {
	t.Parallel()
	testdb.EachWithPostgres(t, func(t *testing.T, open func(...gorm.Option) *gorm.DB) {
		db := open()
		p := idlePurger(t, db)
		stored(t, db, aRequest, 61, 59)
		testdb.WantNil(t, db.Exec("ALTER TABLE belay_answer RENAME TO away").Error)
		if _, err := p.delete(context.Background(), "belay_once", time.Hour, []any{[]byte(aRequest)}); err == nil {
			t.Error("no error without the table")
		}
		testdb.WantNil(t, db.Exec("ALTER TABLE away RENAME TO belay_answer").Error)
		wantRows(t, db, 1)
	})
}
