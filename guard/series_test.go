package guard

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/conflict"
	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/notify"
)

// wellHeld is one key whose lock is well until lost says otherwise.
type wellHeld struct{ lost error }

func (h *wellHeld) alive() error                        { return h.lost }
func (*wellHeld) without() error                        { return nil }
func (*wellHeld) state(string) keyState                 { return keyState{key: "k"} }
func (h *wellHeld) lapsed(string) error                 { return h.lost }
func (*wellHeld) holder(string) (notify.Holder, string) { return notify.HolderSelf, "" }
func (*wellHeld) confirm() error                        { return nil }
func (*wellHeld) ttl() time.Duration                    { return time.Hour }
func (*wellHeld) patience() time.Duration               { return 0 }

// claimsOf is a claim whose answers are given.
type claimsOf struct {
	noClaims
	refused error
	gone    bool
}

func (c *claimsOf) claim(*dbtx.Tx, held) error  { return c.refused }
func (c *claimsOf) purged() bool                { return c.gone }
func (c *claimsOf) passed(context.Context) bool { return false }

// newSeries returns a series on a database of its own.
func newSeries(t *testing.T, c claims, b budget) (*series, *wellHeld) {
	t.Helper()
	db := testdb.OpenSQLite(t, filepath.Join(t.TempDir(), "test.db"))
	if err := dbtx.Install(db); err != nil {
		t.Fatal(err)
	}
	cfg, err := Config{Service: "test"}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	p := &plan{main: "k"}
	if err := p.fill("", new(options)); err != nil {
		t.Fatal(err)
	}
	h := new(wellHeld)
	return &series{db: db, cfg: &cfg, metrics: newMetrics("test"), ctx: t.Context(), plan: p, held: h, claims: c, budget: b, gate: gateOf(0)}, h
}

var errDeadlocked = &mysql.MySQLError{Number: 1213}

func ends(err error) Op { return func(context.Context, *gorm.DB) error { return err } }

// TestSeriesEndsLast: the last ending is known however the attempt ended.
func TestSeriesEndsLast(t *testing.T) {
	s, _ := newSeries(t, noClaims{}, budget{})
	if e := s.attempt(t.Context(), ends(nil)); e.err != nil || e.outcome != notify.OutcomeCommitted || s.last != e {
		t.Errorf("ended with %+v, the last is %+v", e, s.last)
	}
	failed := errors.New("failed")
	if e := s.attempt(t.Context(), ends(failed)); e.err != failed || e.outcome != notify.OutcomeRolledBack || s.last != e { //nolint:errorlint // as it is
		t.Errorf("ended with %+v, the last is %+v", e, s.last)
	}
	func() {
		defer func() { _ = recover() }()
		s.attempt(t.Context(), func(context.Context, *gorm.DB) error { panic("boom") })
	}()
	if s.last.err != errPanicked || s.last.outcome != "" { //nolint:errorlint // as it is
		t.Errorf("the last is %+v, want a panic", s.last)
	}
}

// TestSeriesAgain: what the database has rolled back is run again until the budget is spent, and
// not after the lock is lost.
func TestSeriesAgain(t *testing.T) {
	s, h := newSeries(t, noClaims{}, budget{work: 2})
	for range 2 {
		s.attempt(t.Context(), ends(errDeadlocked))
		if !s.again() {
			t.Fatal("a deadlock is not run again")
		}
	}
	s.attempt(t.Context(), ends(errDeadlocked))
	if s.again() {
		t.Error("it is run again though the budget is spent")
	}
	s.budget = budget{work: 2}
	h.lost = ErrLost
	if s.again() {
		t.Error("it is run again though the lock is lost")
	}
	h.lost = nil
	s.attempt(t.Context(), ends(errors.New("failed")))
	if s.again() {
		t.Error("an error of the operation is run again")
	}
}

// TestSeriesClaims: the operation does not run before its claim is made, which has a budget of
// its own.
func TestSeriesClaims(t *testing.T) {
	c := &claimsOf{refused: errDeadlocked}
	s, _ := newSeries(t, c, budget{claim: 2})
	ran := 0
	op := func(context.Context, *gorm.DB) error { ran++; return errDeadlocked }
	for range 2 {
		if s.attempt(t.Context(), op); !s.again() {
			t.Fatal("a claim is not made again")
		}
	}
	if ran != 0 {
		t.Fatal("the operation ran without its claim")
	}
	c.refused = nil
	if s.attempt(t.Context(), op); ran != 1 || s.again() {
		t.Errorf("the operation ran %d times, and is run again", ran)
	}
}

// TestBudget: tries of the claim are not those of the operation.
func TestBudget(t *testing.T) {
	b := budget{claim: 10, work: 3, used: 10}
	if !b.spent() {
		t.Error("ten tries of ten are left")
	}
	if b.begin(); b.spent() || b.limit() != 3 || b.used != 0 {
		t.Errorf("the operation begins with %+v", b)
	}
	b.used = 2
	if b.begin(); b.used != 2 {
		t.Error("it begins twice")
	}
	if b.stores(); b.limit() != 10 || b.used != 0 {
		t.Errorf("a refusal is stored with %+v", b)
	}
	plain := budget{work: 1, used: 1}
	if plain.begin(); !plain.spent() {
		t.Error("without a claim the tries are forgotten")
	}
}

// overtakenBy is the ending of an attempt on a row that another caller has changed.
func overtakenBy(v verdict, change func(*dbguard.ConflictError)) ending {
	c := &dbguard.ConflictError{
		Kind: dbguard.Stale, Table: "stocks", Columns: []string{"id"}, Key: "k",
		Evidence: dbguard.Evidence{Protected: true, Found: true, Changed: true, Shared: v == overtaken},
	}
	if change != nil {
		change(c)
	}
	f := &finding{key: "k", conflict: c, verdict: v, locked: v != stale, relation: notify.HolderSelf}
	return ending{err: c, outcome: notify.OutcomeRefused, finding: f}
}

// TestOvertaken: only an attempt that lost a race is made again.
func TestOvertaken(t *testing.T) {
	for name, test := range map[string]struct {
		ending ending
		want   bool
	}{
		"under another key":   {overtakenBy(overtaken, nil), true},
		"without the lock":    {overtakenBy(stale, nil), true},
		"an overlap":          {overtakenBy(overlap, func(c *dbguard.ConflictError) { c.Evidence.Shared = false }), false},
		"a claim":             {overtakenBy(overtaken, func(c *dbguard.ConflictError) { c.Subject = conflict.ClaimRow }), false},
		"an unchanged row":    {overtakenBy(stale, func(c *dbguard.ConflictError) { c.Evidence.Changed = false }), false},
		"an error of its own": {ending{err: errors.New("failed"), outcome: notify.OutcomeRolledBack}, false},
	} {
		if got := test.ending.overtaken(); got != test.want {
			t.Errorf("%s: overtaken is %t", name, got)
		}
	}
}

// TestSeriesExplains: the event about a lock has the row that an earlier attempt met under it.
func TestSeriesExplains(t *testing.T) {
	s := &series{claims: noClaims{}}
	s.keep(overtakenBy(overtaken, nil).finding)
	lost := notify.Event{Key: "k", Verdict: notify.VerdictLost, Outcome: notify.OutcomeRolledBack}
	if ev := s.explain(lost); ev.Table != "stocks" || ev.Verdict != notify.VerdictOverlap || ev.Outcome != notify.OutcomeRefused {
		t.Errorf("the event is %+v", ev)
	}
	lost.Outcome = notify.OutcomeCommitted
	if ev := s.explain(lost); ev.Table != "stocks" || ev.Verdict != notify.VerdictLost {
		t.Errorf("the event is %+v", ev)
	}
	lost.Key = "another"
	if ev := s.explain(lost); ev.Table != "" {
		t.Errorf("the event is %+v", ev)
	}
}

// TestClaimedInVain: a claim that was refused for one that is gone is made again.
func TestClaimedInVain(t *testing.T) {
	for gone, want := range map[bool]bool{true: true, false: false} {
		s, _ := newSeries(t, &claimsOf{gone: gone}, budget{claim: 1})
		s.last = overtakenBy(duplicate, func(c *dbguard.ConflictError) { c.Kind, c.Subject = dbguard.Duplicate, conflict.ClaimRow })
		if got := s.again(); got != want {
			t.Errorf("the claim in the way is gone: %t, it is made again: %t", gone, got)
		}
	}
}
