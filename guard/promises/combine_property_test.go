package promises_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/guard/internal/inside"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/once"
)

// TestCombineIsLikeOneByOne: random crews give the same answers, rows, messages and events as the
// same calls made one by one, in their order. These differences are allowed:
//
//   - A lock that was lost is one event for the crew, with a Count of its changes. A
//     change that is made again may lose it again, so at most one does here.
//   - A lock that was handed over is found lost by the one who releases it, whose
//     transaction may have ended otherwise. So nobody repeats an order in such a plan here.
//   - Whoever's context ended before its turn may have ErrBusy, as its wait ends with it.
//   - After a write that the database refuses, and after a leader that panics, the others
//     run again in any order. So at most one does that here, in a plan in which nobody loses
//     the lock, and the rows have stock enough for all.
//   - Whose row another one of the crew inserts, or is there already, runs alone after the
//     crew. So such plans have stock enough, too, and nobody in them runs again. That holds
//     for the row of a request, too.
//   - A caller whose context ends after its change, which is not made here, may be told of
//     a commit where it would have been told of its context.
//   - A caller whose change fails is told so, though the database would have refused its
//     row first: TestCombineOwnErrorComesFirst.
//   - A caller whose change fails is told ErrUnknown if the COMMIT of the others has no
//     answer: TestCombineAwaitsTheCommit.
//
// BELAY_CREWS says how many crews there are.
func TestCombineIsLikeOneByOne(t *testing.T) {
	n := 80
	if s := os.Getenv("BELAY_CREWS"); s != "" {
		var err error
		n, err = strconv.Atoi(s)
		wantNil(t, err)
	}
	crew, single := newWorld(t), newWorld(t)
	inside.Of(crew.g.Guard).NoTurnLimit()
	for seed := range uint64(n) {
		p := newPlan(rand.New(rand.NewPCG(seed, 0)))
		crew.reset(p)
		single.reset(p)
		together, apart := crew.together(p), single.apart(p)
		for i := range p.callers {
			if !p.same(together[i], apart[i]) {
				t.Errorf("seed %d: %v of row %d, at %d, got %v in a crew and %v alone", seed, p.callers[i].what, p.callers[i].row, i, together[i], apart[i])
			}
		}
		if a, b := fmt.Sprint(crew.rows()), fmt.Sprint(single.rows()); a != b {
			t.Errorf("seed %d: the rows are %s after crews and %s after single calls", seed, a, b)
		}
		if a, b := fmt.Sprintf("%q", crew.messages()), fmt.Sprintf("%q", single.messages()); a != b {
			t.Errorf("seed %d: the messages are %s after crews and %s after single calls", seed, a, b)
		}
		if a, b := crew.lost(len(p.callers)), single.lost(1); a != b {
			t.Errorf("seed %d: events of crews are of %q, of single calls of %q", seed, a, b)
		}
		if t.Failed() {
			t.Fatalf("seed %d: the plan is %+v", seed, p)
		}
	}
}

// A part is what a caller does.
type part int

const (
	takes     part = iota
	refuses        // returns an error after it has altered the row
	panics         // after it has altered the row
	exits          // its goroutine
	renames        // alters the primary key
	wild           // writes what the database refuses
	gives          // up: its context has ended before its turn comes
	loses          // the lock, while it changes the row
	deadlocks      // the first attempt
	parts          // how many there are
)

func (w part) String() string {
	return [...]string{"takes", "refuses", "panics", "exits", "renames", "wild", "gives up", "loses", "deadlocks"}[w]
}

type plannedCall struct {
	row    int64
	what   part
	amount int
	no     string // of the order
	serves string // the id of a request; empty = none
}

// A trade is what all calls of a plan are made of.
type trade int

const (
	updates trade = iota
	sales         // an Insert and an Update
	inserts       // nothing but an Insert
	trades
)

// A plan is calls that queue under one key, in this order.
type plan struct {
	trade   trade
	callers []plannedCall
	left    [3]int
	ordered bool // the order is kept
	sends   bool // messages
}

func newPlan(r *rand.Rand) plan {
	p := plan{trade: trade(r.IntN(int(trades))), ordered: true}
	rows, reruns := 1+r.Int64N(3), false
	serve := r.IntN(2) == 0
	twins := (serve || p.trade != updates) && r.IntN(2) == 0
	seen := make(map[string]int)
	repeats := (serve || p.trade != updates) && r.IntN(2) == 0
	if twins {
		reruns, p.ordered = true, false
	}
	for range 1 + r.IntN(10) {
		c := plannedCall{row: 1 + r.Int64N(rows), amount: 1 + r.IntN(3)}
		if r.IntN(3) == 0 {
			c.what = part(r.IntN(int(parts)))
		}
		if c.what >= panics && c.what <= loses && c.what != renames && c.what != gives {
			if reruns || repeats && c.what == loses {
				c.what = takes
			}
			reruns = true
			p.ordered = p.ordered && c.what == loses
		}
		switch c.no = fmt.Sprint(c.row, "+", len(p.callers)); {
		case twins: // the order of a third one would be open
			if no := fmt.Sprint(c.row, "-", r.IntN(4)); seen[no] < 2 {
				c.no = no
				seen[no]++
			}
		case repeats && r.IntN(4) == 0:
			c.no = "old"
		}
		if serve { // it is the request that is repeated
			c.serves, c.no = c.no, fmt.Sprint(c.row, "+", len(p.callers))
		}
		p.callers = append(p.callers, c)
	}
	for i := range p.left {
		p.left[i] = r.IntN(12)
		if !p.ordered {
			p.left[i] = 1000
		}
	}
	p.sends = r.IntN(2) == 0
	return p
}

// An answer is what a caller got.
type answer struct {
	err   string
	left  int
	at    dbguard.Version
	order bool // has the number that the database gave it
}

func (p plan) same(a, b answer) bool {
	if !p.ordered && a.err == "" && b.err == "" {
		a.left, a.at = b.left, b.at
	}
	return a == b
}

// A world is a database and an instance of a service.
type world struct {
	t    *testing.T
	db   *gorm.DB
	g    *guardtest.Guard
	plan plan
	seen int // events
	busy int // deadlocks to come, by row
}

func newWorld(t *testing.T) *world {
	db := testdb.OpenSQLite(t, filepath.Join(t.TempDir(), "stocks.db"))
	pool, err := db.DB()
	wantNil(t, err)
	pool.SetMaxOpenConns(1)
	wantNil(t, db.Exec("PRAGMA synchronous = OFF").Error) // the time goes into the disk
	wantNil(t, db.AutoMigrate(&Stock{}, &Order{}))
	wantNil(t, once.Migrate(bg, db))
	wantNil(t, db.Exec("CREATE TRIGGER enough BEFORE UPDATE ON stocks WHEN NEW.left < 0 BEGIN SELECT RAISE(ABORT, 'too few'); END").Error)
	w := &world{t: t, db: db, g: guardtest.New(t, db)}
	wantNil(t, db.Callback().Update().Before("gorm:update").Register("test:deadlock", func(tx *gorm.DB) {
		if w.busy > 0 {
			w.busy--
			_ = tx.AddError(errDeadlock)
		}
	}))
	return w
}

func (w *world) reset(p plan) {
	w.t.Helper()
	w.busy, w.plan = 0, p
	wantNil(w.t, w.db.Exec("DELETE FROM stocks").Error)
	wantNil(w.t, w.db.Exec("DELETE FROM orders").Error)
	wantNil(w.t, w.db.Create(&Order{No: "old"}).Error)
	wantNil(w.t, w.db.Exec("DELETE FROM belay_once").Error)
	wantNil(w.t, w.db.Exec("DELETE FROM belay_message").Error)
	wantNil(w.t, w.g.Do(bg, "sku", func(context.Context, *gorm.DB) error { return nil }, guard.For(request("old"))))
	for i, left := range p.left {
		wantNil(w.t, w.db.Create(&Stock{ID: int64(i + 1), Left: left}).Error)
	}
}

func (w *world) rows() (stocks []Stock, orders, requests []string) {
	w.t.Helper()
	wantNil(w.t, w.db.Order("id").Find(&stocks).Error)
	wantNil(w.t, w.db.Model(&Order{}).Order("no").Pluck("no || ' ' || amount", &orders).Error)
	wantNil(w.t, w.db.Table("belay_once").Order("request").Pluck("hex(request)", &requests).Error)
	return stocks, orders, requests
}

// sends returns a Change that sends a message or two, of which one knows what is left.
func (w *world) sends(c plannedCall, s *Stock) guard.Change {
	all := guard.SendFunc(func() (guard.Message, error) {
		m := guard.Message{Topic: "sale", Body: fmt.Append(nil, c.no)}
		if w.plan.ordered {
			m.Body = fmt.Append(m.Body, " ", s.Left)
		}
		return m, nil
	})
	if c.amount == 1 {
		all = guard.All(all, guard.Send(guard.Message{Topic: "mail", Body: fmt.Append(nil, c.no)}))
	}
	return all
}

// messages returns the messages about each row of stock, in their order if the plan keeps it, with
// their ids if those come from requests. Crews are made of calls that change one row.
func (w *world) messages() (all []string) {
	w.t.Helper()
	stored := sentBy(w.t, w.db)
	slices.SortStableFunc(stored, func(a, b sent) int { return cmp.Compare(a.Body[0], b.Body[0]) })
	for _, m := range stored {
		if w.plan.callers[0].serves == "" {
			m.MessageID = ""
		}
		all = append(all, fmt.Sprintf("%s %s %s %s", m.MessageID, m.Topic, m.MessageKey, m.Body))
	}
	if !w.plan.ordered {
		slices.Sort(all)
	}
	return all
}

// lost returns what the events since the last call say.
func (w *world) lost(changes int) (what string) {
	all := w.g.Events.All()
	for _, ev := range all[w.seen:] {
		what += fmt.Sprint(ev.Verdict, ";")
		if ev.Count < 1 || ev.Count > changes {
			w.t.Errorf("an event counts %d of %d", ev.Count, changes)
		}
	}
	w.seen = len(all)
	return what
}

// call makes a call.
func (w *world) call(ctx context.Context, got *answer, c plannedCall, opts ...guard.Option) {
	s, o := Stock{ID: c.row}, Order{No: c.no, Amount: c.amount}
	got.err = "none"
	tries := 0
	defer func() {
		if what := recover(); what != nil {
			got.err = fmt.Sprint(what)
		}
		got.left, got.at = s.Left, s.Version
		if got.order = o.ID != 0; got.order {
			var stored Order
			wantNil(w.t, w.db.Take(&stored, o.ID).Error)
			if stored != o {
				w.t.Errorf("a caller has the order %+v, the database %+v", o, stored)
			}
		}
	}()
	update := guard.Update(&s, func(s *Stock) error {
		tries++
		if s.Left < c.amount {
			return errSoldOut
		}
		s.Left -= c.amount
		switch c.what {
		case refuses:
			return errOdd
		case panics:
			panic("boom")
		case exits:
			runtime.Goexit()
		case renames:
			s.ID++
		case wild:
			s.Left = -1
		case loses:
			w.g.Forget("sku")
		case deadlocks:
			if tries == 1 {
				w.busy++
			}
		}
		return nil
	})
	change := []guard.Change{updates: update, sales: guard.All(guard.Insert(&o), update), inserts: guard.Insert(&o)}[w.plan.trade]
	if w.plan.sends {
		change = guard.All(w.sends(c, &s), change)
	}
	if opts = append(opts, guard.Wait(1<<40)); c.serves != "" {
		opts = append(opts, guard.For(request(c.serves)))
	}
	err := w.g.Apply(ctx, "sku", change, opts...)
	switch {
	case err == nil:
		got.err = ""
	case errors.Is(err, context.Canceled):
		got.err = "cancelled"
	case errors.Is(err, guard.ErrDuplicate):
		got.err = "duplicate"
	default:
		got.err = err.Error()
	}
}

var errOdd = errors.New("odd")

// together has the calls queue behind one that holds the key.
func (w *world) together(p plan) []answer {
	w.t.Helper()
	got := make([]answer, len(p.callers))
	var all sync.WaitGroup
	ended, cancel := context.WithCancel(bg)
	defer cancel()
	wantNil(w.t, w.g.Do(bg, "sku", func(context.Context, *gorm.DB) error {
		for i, c := range p.callers {
			ctx := bg
			if c.what == gives {
				ctx = ended
			}
			all.Go(func() { got[i] = w.goes(ctx, c, guard.Combine()) })
			for inside.Of(w.g.Guard).Lines() == 0 || inside.Of(w.g.Guard).Queued("sku") != i {
				runtime.Gosched()
			}
		}
		cancel()
		return nil
	}))
	all.Wait()
	if n := inside.Of(w.g.Guard).Lines(); n != 0 {
		w.t.Errorf("%d lines are left", n)
	}
	return got
}

// apart makes the calls one by one.
func (w *world) apart(p plan) []answer {
	got := make([]answer, len(p.callers))
	ended, cancel := context.WithCancel(bg)
	cancel()
	for i, c := range p.callers {
		ctx := bg
		if c.what == gives {
			ctx = ended
		}
		got[i] = w.goes(ctx, c)
	}
	return got
}

// goes makes a call on a goroutine that it may end.
func (w *world) goes(ctx context.Context, c plannedCall, opts ...guard.Option) (got answer) {
	var one sync.WaitGroup
	one.Go(func() { w.call(ctx, &got, c, opts...) })
	one.Wait()
	return got
}
