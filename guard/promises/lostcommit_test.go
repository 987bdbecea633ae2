package promises_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/once"
)

// lostWrites are the kinds of writes whose COMMIT gets lost. write returns the
// operation that makes write n, and a function that reports whether the database
// has it.
var lostWrites = []struct {
	kind   string
	proven bool // by the row, where the database is not asked
	claims bool // the write serves a request, whose claim proves it
	write  func(db *gorm.DB, n int) (op guard.Op, there func() bool)
}{
	{"insert, generated key", true, false, func(db *gorm.DB, n int) (guard.Op, func() bool) {
		row := Order{No: strconv.Itoa(n)}
		return guard.Insert(&row).Run, counts(db, &Order{}, "no = ?", row.No)
	}},
	{"insert, natural key", false, false, func(db *gorm.DB, n int) (guard.Op, func() bool) {
		row := Label{Code: strconv.Itoa(n), Amount: 5}
		return guard.Insert(&row).Run, counts(db, &Label{}, "code = ?", row.Code)
	}},
	{"versioned update", false, false, func(db *gorm.DB, n int) (guard.Op, func() bool) {
		id := int64(n + 1)
		return guard.Update(&Stock{ID: id}, take).Run, counts(db, &Stock{}, "id = ? AND stocks.left = ?", id, stocked-1)
	}},
	{"stamped update", true, false, func(db *gorm.DB, n int) (guard.Op, func() bool) {
		id := int64(n + 1)
		return guard.Update(&Ware{ID: id}, takeWare).Run, counts(db, &Ware{}, "id = ? AND wares.left = ?", id, stocked-1)
	}},
	{"update for a request", true, true, func(db *gorm.DB, n int) (guard.Op, func() bool) {
		code := strconv.Itoa(n)
		write := func(_ context.Context, tx *gorm.DB) error {
			return tx.Model(&Label{}).Where("code = ?", code).Update("amount", 7).Error
		}
		_ = db.Save(&Label{Code: code, Amount: 5})
		return write, counts(db, &Label{}, "code = ? AND amount = 7", code)
	}},
}

// stocked is how many are left of each stock at first.
const stocked = 9

// counts returns a function that reports whether there is one such row.
func counts(db *gorm.DB, model any, where string, args ...any) func() bool {
	return func() bool {
		var n int64
		return db.Model(model).Where(where, args...).Count(&n).Error == nil && n == 1
	}
}

// TestLostCommits loses many COMMITs of each kind of write: half of them reach the
// server, which executes them, and half do not. Do may return ErrUnknown, but no other
// answer may be wrong. BELAY_LOST sets how many COMMITs are lost of each kind.
func TestLostCommits(t *testing.T) {
	t.Parallel()
	lost := 40
	if text := os.Getenv("BELAY_LOST"); text != "" {
		var err error
		lost, err = strconv.Atoi(text)
		wantNil(t, err)
	}
	for name, server := range map[string]struct {
		dsn  func(testing.TB) string
		open func(testing.TB, string, ...gorm.Option) *gorm.DB
	}{
		"mysql":    {teststack.MySQL, testdb.OpenMySQL},
		"mysql9":   {teststack.MySQL9, testdb.OpenMySQL},
		"postgres": {teststack.Postgres, testdb.OpenPostgres},
	} {
		t.Run(name, func(t *testing.T) {
			dsn := server.dsn(t)
			direct := server.open(t, dsn)
			wantNil(t, direct.AutoMigrate(&Order{}, &Stock{}, &Label{}, &Ware{}))
			wantNil(t, once.Migrate(bg, direct))
			stocks, wares := make([]Stock, lost), make([]Ware, lost)
			for n := range lost {
				stocks[n] = Stock{ID: int64(n + 1), Left: stocked}
				wares[n] = Ware{ID: int64(n + 1), Left: stocked}
			}
			wantNil(t, direct.Create(&stocks).Error)
			wantNil(t, direct.Create(&wares).Error)
			k := testdb.NewLink(t, testdb.AddrOf(t, dsn))
			g := guardtest.New(t, server.open(t, k.Through(t, dsn)))
			for _, w := range lostWrites {
				var done, failed, unknown, wrong int
				for n := range lost {
					executed := n%2 == 0
					op, there := w.write(direct, n)
					key := fmt.Sprintf("%s:%d", w.kind, n)
					var opts []guard.Option
					if w.claims {
						opts = append(opts, guard.For(request(key)))
					}
					err := loseCommit(g, k, key, op, executed, opts...)
					if there() != executed {
						t.Fatalf("%s: the database has the write: %t, want %t", w.kind, !executed, executed)
					}
					switch {
					case errors.Is(err, guard.ErrUnknown):
						unknown++
					case (err == nil) != executed:
						wrong++
						t.Errorf("%s: Do returned %v, but the database has the write: %t", w.kind, err, executed)
					case err == nil:
						done++
					default:
						failed++
					}
				}
				t.Logf("%-8s  %-21s  resolved %d (done %d, failed %d), unknown %d of %d, wrong %d",
					name, w.kind, done+failed, done, failed, unknown, lost, wrong)
				if w.claims && unknown > lost/10 { // on a machine that has other work, some are not answered in time
					t.Errorf("%s: %d of %d are unknown, though a claim proves each", w.kind, unknown, lost)
				}
				if proven := w.proven || name == "postgres"; proven && unknown > lost/4 {
					t.Errorf("%s: %d of %d are unknown, though they are proven", w.kind, unknown, lost)
				}
			}
		})
	}
}

// loseCommit does op over k, which cuts the connection at the COMMIT: before the
// server gets it, or when the server has executed it.
func loseCommit(g *guardtest.Guard, k *testdb.Link, key string, op guard.Op, executed bool, opts ...guard.Option) error {
	cut := map[bool]*atomic.Bool{true: &k.After, false: &k.Before}[executed]
	cut.Store(true)
	defer cut.Store(false)
	return g.Do(bg, key, op, opts...)
}
