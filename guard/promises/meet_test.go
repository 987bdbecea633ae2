package promises_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/once"
)

// What a call can be made of, in the order of the table in docs/guide.md. Each call inserts an order.
const (
	viaDo = 1 << iota // begins the call, in place of Apply
	viaSQL
	viaOnce
	viaCall
	withNested // inside an operation under its key
	withWait
	withRetries
	withAlso
	withProtects
	withServes // For
	withRemember
	withCombine
	withUpdates // another row, too
	withSends   // a message
	withDegraded
	features = iota
)

var featureNames = [features]string{
	"Do", "SQL", "Once", "Call", "nested", "Wait", "Retries", "Also", "Protects", "For", "Remember", "Combine", "Update", "Send", "DBOnly",
}

// A meeting is a call made of some features.
type meeting int

func (m meeting) has(features ...meeting) bool {
	for _, f := range features {
		if m&f == 0 {
			return false
		}
	}
	return true
}

func (m meeting) String() string {
	var names []string
	for n, name := range featureNames {
		if m.has(1 << n) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " + ")
}

// impossible reports whether no program can be written with both.
func (m meeting) impossible() bool {
	calls := m.has(viaCall) && (m.has(viaDo) || m.has(viaSQL) || m.has(viaOnce))
	return calls || m.has(viaDo, viaOnce) || m.has(viaDo, viaSQL) || m.has(withNested, withDegraded) // an operation that runs is not without its lock
}

// refusal returns what the error of a refused call says, "" if the call is promised.
func (m meeting) refusal() string {
	switch {
	case m.has(viaCall) && (m.has(withCombine) || m.has(withServes) || m.has(withProtects) || m.has(withRemember)):
		return "Combine, For, Protects and Remember are not for it"
	case m.has(viaOnce, withServes):
		return "one operation serves one"
	case m.has(viaOnce, withProtects):
		return "rows under the key of a request"
	case m.has(withAlso, withRemember) && !m.has(viaOnce):
		return "Remember with several keys"
	case m.has(withCombine) && (m.has(viaOnce) || m.has(viaSQL) || m.has(viaDo)):
		return "Combine"
	case m.has(withNested) && (m.has(viaOnce) || m.has(viaCall) || m.has(withServes)):
		return "Do inside an operation"
	case m.has(withDegraded, withAlso) && !m.has(withUpdates):
		return "would guard what was written"
	case m.has(withDegraded, viaSQL) && !m.has(withProtects) && !m.has(viaOnce):
		return "would guard what was written"
	}
	return ""
}

// judged reports whether a repeat is known by its row, or by its request. A row that is inserted by SQL has to be
// named.
func (m meeting) judged() bool {
	return !m.has(viaSQL) || m.has(withProtects) || m.has(viaOnce) || m.has(viaCall) || m.has(withServes)
}

// A meeter makes the calls of one meeting.
type meeter struct {
	*env
	meeting
	id    string // of the order, the keys and the request
	fails bool   // at its end
	stock int64
	guard *guard.Guard
}

// call makes the call, and reports whether the answer was a stored one.
func (m *meeter) call() (replayed bool, err error) {
	key := "order:" + m.id
	if !m.has(withNested) {
		return m.begin(bg, key)
	}
	outer := []guard.Option{guard.Wait(10 * time.Second)}
	if m.has(withAlso) {
		outer = append(outer, guard.Also("item:"+m.id))
	}
	err = m.guard.Do(bg, key, func(ctx context.Context, _ *gorm.DB) error {
		replayed, err = m.begin(ctx, key)
		return err
	}, outer...)
	return replayed, err
}

func (m *meeter) begin(ctx context.Context, key string) (replayed bool, err error) {
	r := request(m.id)
	byGorm := func(ctx context.Context, tx *gorm.DB) error { return m.change().Run(ctx, tx) }
	answered := func(a guard.Answer[string], err error) (bool, error) {
		if err == nil && a.Value != "of "+m.id {
			err = fmt.Errorf("the answer is %q", a.Value)
		}
		return a.Replayed, err
	}
	switch {
	case m.has(viaCall):
		return answered(m.inTheMiddle().Run(ctx, m.guard, printed(m.id, m.id), m.id, m.options()...))
	case m.has(viaOnce, viaSQL):
		return answered(guard.OnceSQL(ctx, m.guard, r, func(ctx context.Context, tx *sql.Tx) (string, error) { return "of " + m.id, m.bySQL(ctx, tx) }, m.options()...))
	case m.has(viaOnce):
		return answered(guard.Once(ctx, m.guard, r, func(ctx context.Context, tx *gorm.DB) (string, error) { return "of " + m.id, byGorm(ctx, tx) }, m.options()...))
	case m.has(viaSQL):
		return false, m.guard.DoSQL(ctx, key, m.bySQL, m.options()...)
	case m.has(viaDo):
		return false, m.guard.Do(ctx, key, byGorm, m.options()...)
	}
	return false, m.guard.Apply(ctx, key, m.change(), m.options()...)
}

// inTheMiddle returns the call between two transactions, which both write each protected row.
func (m *meeter) inTheMiddle() guard.Call[string, string, string] {
	moves := func(ctx context.Context, tx *gorm.DB, n int) error {
		if !m.has(withUpdates) {
			return nil
		}
		return guard.Update(&Stock{ID: m.stock}, func(s *Stock) error { s.Left += n; return nil }).Run(ctx, tx)
	}
	return guard.Call[string, string, string]{
		Name: "take",
		Reserve: func(ctx context.Context, tx *gorm.DB, _ string) error {
			if err := moves(ctx, tx, -2); err != nil || !m.fails {
				return err
			}
			return errFails
		},
		Do: func(_ context.Context, _, in string) (string, error) { return "of " + in, nil },
		Settle: func(ctx context.Context, tx *gorm.DB, _ string, o guard.Outcome[string]) (string, error) {
			err := errors.Join(guard.Insert(&Order{No: m.id}).Run(ctx, tx), moves(ctx, tx, 1))
			if err == nil && m.has(withSends) {
				err = send(m.id).Run(ctx, tx)
			}
			return o.Value, err
		},
		Until: time.Hour,
	}
}

// change is made anew for each call, as a call fills its rows.
func (m *meeter) change() guard.Change {
	all := []guard.Change{guard.Insert(&Order{No: m.id})}
	if m.has(withUpdates) {
		all = append(all, guard.Update(&Stock{ID: m.stock}, take))
	}
	if m.has(withSends) {
		all = append(all, send(m.id))
	}
	if m.fails {
		all = append(all, guard.SendFunc(func() (guard.Message, error) { return guard.Message{}, errFails }))
	}
	return guard.All(all...)
}

func (m *meeter) bySQL(ctx context.Context, tx *sql.Tx) error {
	if _, err := tx.ExecContext(ctx, "INSERT INTO orders (no, amount) VALUES ('"+m.id+"', 1)"); err != nil {
		return err
	}
	if m.has(withUpdates) {
		var version int64
		if err := tx.QueryRowContext(ctx, fmt.Sprintf("SELECT version FROM stocks WHERE id = %d", m.stock)).Scan(&version); err != nil {
			return err
		}
		if err := guard.UpdateRow(ctx, guard.Row("stocks", "id", m.stock), version, m.db.Statement.Quote("left")+" = "+m.db.Statement.Quote("left")+" - 1"); err != nil {
			return err
		}
	}
	if m.has(withSends) {
		if err := guard.SendSQL(ctx, note(m.id)); err != nil {
			return err
		}
	}
	if m.fails {
		return errFails
	}
	return nil
}

func (m *meeter) options() (opts []guard.Option) {
	add := func(f meeting, o guard.Option) {
		if m.has(f) {
			opts = append(opts, o)
		}
	}
	add(withWait, guard.Wait(10*time.Second))
	add(withRetries, guard.Retries(2))
	add(withAlso, guard.Also("item:"+m.id, &Stock{ID: m.stock}))
	add(withProtects, guard.Protects(&Order{No: m.id}))
	add(withServes, guard.For(request(m.id)))
	add(withRemember, guard.Remember(time.Minute))
	add(withCombine, guard.Combine())
	return opts
}

// TestMeet: every two features of a call, and every three, are refused together, or keep what they promise:
// a call that fails has no effect, of callers at the same time one takes effect, and of repeats none. BELAY_MEET=15 tries all combinations.
func TestMeet(t *testing.T) {
	t.Parallel()
	together := 3
	if text := os.Getenv("BELAY_MEET"); text != "" {
		var err error
		together, err = strconv.Atoi(text)
		wantNil(t, err)
	}
	withOnce(t, func(e *env) {
		wantNil(e.t, once.MigrateCalls(bg, e.db))
		tried, refused := 0, 0
		for m := range meeting(1 << features) {
			if bits.OnesCount(uint(m)) > together || m.impossible() {
				continue
			}
			tried++
			if m.refusal() != "" {
				refused++
			}
			m.check(e)
		}
		for _, ev := range e.Events.All() { // no lock has failed, but for those of an engine that was away
			if ev.Verdict != notify.VerdictDegraded {
				e.t.Errorf("event %+v", ev)
			}
		}
		e.t.Logf("belay meet: %d combinations, %d promised, %d refused", tried, tried-refused, refused)
	})
}

// check makes the call, by several callers and again.
func (m meeting) check(e *env) {
	id := fmt.Sprintf("m%d", m)
	at := &meeter{env: e, meeting: m, id: id, stock: 100 + int64(m), guard: e.Guard.Guard}
	e.create(&Stock{ID: at.stock, Left: 9})
	if m.has(withDegraded) {
		at.guard, _ = e.dbOnly(guard.Config{})
	}
	if text := m.refusal(); text != "" {
		if _, err := at.call(); err == nil || !strings.Contains(err.Error(), text) {
			e.t.Errorf("%v: error is %v, want one with %q", m, err, text)
		}
		at.wantEffects(0)
		return
	}
	at.fails = true
	if _, err := at.call(); !errors.Is(err, errFails) {
		e.t.Errorf("%v: error is %v, want that of the operation", m, err)
	}
	at.wantEffects(0)
	at.fails = false
	at.many()
	at.wantEffects(1)
	at.repeat()
	at.wantEffects(1)
}

var errFails = errors.New("the operation fails")

// many makes the call by callers at the same time.
func (m *meeter) many() {
	var done sync.WaitGroup
	results := make(chan error, 4)
	for range cap(results) {
		done.Go(func() {
			replayed, err := m.call()
			if replayed {
				err = guard.ErrDuplicate
			}
			results <- err
		})
	}
	done.Wait()
	close(results)
	first := 0
	for err := range results {
		switch {
		case err == nil:
			first++
		case !m.judged() && isUnique(err):
		case !errors.Is(err, guard.ErrDuplicate) && !errors.Is(err, guard.ErrBusy):
			m.t.Errorf("%v: %v", m.meeting, err)
		case m.has(withWait) && errors.Is(err, guard.ErrBusy):
			m.t.Errorf("%v: busy though it waits: %v", m.meeting, err)
		}
	}
	if first != 1 {
		m.t.Errorf("%v: %d callers of 4 are the first", m.meeting, first)
	}
}

func (m *meeter) repeat() {
	replayed, err := m.call()
	switch {
	case !m.judged() && isUnique(err):
	case (m.has(viaOnce) || m.has(viaCall)) && (!replayed || err != nil):
		m.t.Errorf("%v: the repeat: replayed %v, %v", m.meeting, replayed, err)
	case !m.has(viaOnce) && !m.has(viaCall) && !errors.Is(err, guard.ErrDuplicate):
		m.t.Errorf("%v: the repeat: %v, want ErrDuplicate", m.meeting, err)
	}
}

// isUnique reports whether a unique index has refused a row, which no key protects.
func isUnique(err error) bool {
	var c *dbguard.ConflictError
	return errors.As(err, &c) || strings.Contains(strings.ToLower(err.Error()), "unique") || strings.Contains(err.Error(), "Duplicate entry")
}

// wantEffects checks how often the call has taken effect, with all that belongs to it.
func (m *meeter) wantEffects(n int64) {
	m.t.Helper()
	var orders, messages int64
	wantNil(m.t, m.db.Model(&Order{}).Where("no = ?", m.id).Count(&orders).Error)
	wantNil(m.t, m.db.Table("belay_message").Where("body = ?", []byte(m.id)).Count(&messages).Error)
	taken := int64(9 - m.env.stock(m.stock).Left)
	want := func(what string, got int64, f meeting) {
		if n := n; got != n && (f == 0 || m.has(f)) || f != 0 && !m.has(f) && got != 0 {
			m.t.Errorf("%v: %d %s, want %d", m.meeting, got, what, n)
		}
	}
	want("orders", orders, 0)
	want("taken", taken, withUpdates)
	want("messages", messages, withSends)
}

// TestMeetTable: the guide lists what is refused, and no more.
func TestMeetTable(t *testing.T) {
	page, err := os.ReadFile("../../docs/guide.md")
	wantNil(t, err)
	_, section, _ := strings.Cut(string(page), "\n## Options together\n")
	section, _, _ = strings.Cut(section, "\n## ")
	listed := make(map[string]string)
	for _, row := range regexp.MustCompile("(?m)^\\| `(.+?)` \\+ `(.+?)`[^|]* \\| `(.+?)` \\|").FindAllStringSubmatch(section, -1) {
		listed[row[1]+" + "+row[2]] = row[3]
	}
	for m := range meeting(1 << features) {
		text := m.refusal()
		if text == "" || m.impossible() || bits.OnesCount(uint(m)) > 2 {
			continue
		}
		if says := listed[m.String()]; !strings.HasPrefix(says, text) {
			t.Errorf("%v is refused by %q, the guide says %q", m, text, says)
		}
		delete(listed, m.String())
	}
	tried, refused := 0, 0
	for m := range meeting(1 << features) {
		if bits.OnesCount(uint(m)) <= 3 && !m.impossible() {
			tried++
			if m.refusal() != "" {
				refused++
			}
		}
	}
	if says := fmt.Sprintf("%d combinations, of which %d are refused", tried, refused); !strings.Contains(strings.Join(strings.Fields(section), " "), says) {
		t.Errorf("the guide does not say %q", says)
	}
	for pair := range listed {
		t.Errorf("%s is not refused, though the guide lists it", pair)
	}
}
