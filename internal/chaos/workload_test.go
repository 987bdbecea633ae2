package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
)

// A task is what a call does.
type task struct {
	kind  string
	key   string
	id    int64
	wait  time.Duration // for the lock; 0 fails fast
	takes time.Duration
	after bool // it takes its time after its writes, not before
	write write
	opts  []guard.Option

	serves bool  // it serves the request of that id
	pays   bool  // it asks for the payment of that id
	other  int64 // the row under the second key, or 0
	change change
}

// also returns the keys of a task beside the first one.
func (t task) also() []string {
	if t.serves && byOnce(t.id) {
		return []string{keyOf(tallies, tallyOf(t.id))}
	}
	if t.other == 0 {
		return nil
	}
	return []string{keyOf(accounts, t.other)}
}

// write makes the writes of a task, by a worker.
type write func(ctx context.Context, tx *gorm.DB, w *worker, t task, do string) error

// change makes the Change of a task that may share its transaction, and the row that it
// changes.
type change func(w *worker, t task, do string) (guard.Change, *Stock)

// A workload is a kind of tasks.
type workload struct {
	kind   string
	write  write
	opts   func(id int64, do string) []guard.Option
	change change // or write
}

// workloads are the kinds of tasks by what they write.
var workloads = map[class][]workload{
	orders:   {{"insert", insertOrder, nil, nil}},
	claims:   {{"remembered insert", insertClaim, func(int64, string) []guard.Option { return []guard.Option{guard.Remember(2 * time.Second)} }, nil}},
	counters: {{"update", updateCounter, nil, nil}, {"retried update", updateCounter, retried, nil}},
	stamped:  {{"stamped update", updateStamped, retried, nil}},
	pairs:    {{"two rows", updatePair, retried, nil}},
	items: {
		{"two writes", sell, func(id int64, do string) []guard.Option {
			return []guard.Option{guard.Retries(2), guard.Protects(&Item{ID: id}, &Sale{No: do})}
		}, nil},
		{"two changes", sellByChanges, nil, nil},
		{"nested", sellNested, nil, nil},
	},
	depots:   {{"send", sendParcel, retried, nil}, {"send by changes", sendByChanges, retried, nil}},
	accounts: {{"transfer", transfer, retried, nil}},
	stocks:   {{kind: "combined update", change: grow}, {kind: "combined sale", change: growAndSell}},
}

func retried(int64, string) []guard.Option { return []guard.Option{guard.Retries(2)} }

// draw draws what a call does so long after the workers began.
func draw(r *rand.Rand, at time.Duration, do string) task {
	p := drawPick(r)
	if p.Class == tallies {
		return drawRequest(r, p.id(at))
	}
	if p.Class == payments {
		return task{kind: "payment", id: p.id(at), pays: true}
	}
	kinds := workloads[p.Class]
	if own := ownKinds(do)[p.Class]; own != nil {
		kinds = own
	}
	kind := kinds[r.IntN(len(kinds))]
	t := task{
		kind: kind.kind, id: p.id(at), key: p.key(at), write: kind.write,
		wait:  time.Duration(r.IntN(2)) * time.Second,
		takes: time.Duration(r.IntN(4)) * time.Millisecond,
		after: r.IntN(2) == 0,
	}
	if r.IntN(8) == 0 { // long enough for another to wait for its row
		t.takes = time.Duration(r.IntN(20)) * time.Millisecond
	}
	if p.Class == orders && r.IntN(200) == 0 { // a slow one, which a failover may catch
		t.takes = time.Duration(4+r.IntN(3)) * time.Second
	}
	if t.change = kind.change; t.change != nil {
		t.wait = time.Second // or it would run alone
	}
	if p.Class == accounts {
		t.wait = max(t.wait, transferWait)
		t.other = 1 + (t.id+r.Int64N(rowsOf[accounts]-1))%rowsOf[accounts]
		t.opts = append(t.opts, guard.Also(keyOf(accounts, t.other), &Account{ID: t.other}))
	}
	t.opts = append(t.opts, guard.Wait(t.wait))
	if kind.opts != nil {
		t.opts = append(t.opts, kind.opts(t.id, do)...)
	}
	return t
}

// drawRequest draws how a request is made.
func drawRequest(r *rand.Rand, id int64) task {
	t := task{
		kind: "request", id: id, key: requestKey(id), serves: true,
		wait:  time.Duration(r.IntN(2)) * time.Second,
		takes: time.Duration(r.IntN(8)) * time.Millisecond,
		after: r.IntN(2) == 0,
	}
	t.opts = []guard.Option{guard.Wait(t.wait), guard.Retries(2)}
	if byOnce(id) {
		t.kind = "once"
		t.opts = append(t.opts, guard.Also(keyOf(tallies, tallyOf(id)), &Tally{ID: tallyOf(id)}))
	}
	return t
}

func insertOrder(ctx context.Context, tx *gorm.DB, _ *worker, t task, do string) error {
	return guard.Insert(&Order{No: fmt.Sprint(t.id), By: do}).Run(ctx, tx)
}

func insertClaim(ctx context.Context, tx *gorm.DB, _ *worker, t task, do string) error {
	return guard.Insert(&Claim{No: fmt.Sprint(t.id), By: do}).Run(ctx, tx)
}

func updateCounter(ctx context.Context, tx *gorm.DB, w *worker, t task, do string) error {
	return guard.Update(&Counter{ID: t.id}, func(c *Counter) error {
		w.read(do, int64(c.Version))
		c.N++
		linger(ctx, t.takes)
		return nil
	}).Run(ctx, tx)
}

func updateStamped(ctx context.Context, tx *gorm.DB, w *worker, t task, do string) error {
	return guard.Update(&Stamped{ID: t.id}, func(s *Stamped) error {
		w.read(do, int64(s.Version))
		s.N++
		return nil
	}).Run(ctx, tx)
}

// updatePair updates the first row first: two of them never wait for each other.
func updatePair(ctx context.Context, tx *gorm.DB, w *worker, t task, do string) error {
	grow := func(h *Half) error {
		w.read(do, int64(h.Version))
		h.N++
		return nil
	}
	return guard.All(guard.Update(&Half{ID: 2 * t.id}, grow), guard.Update(&Half{ID: 2*t.id + 1}, grow)).Run(ctx, tx)
}

// sell is an operation as people write them.
func sell(_ context.Context, tx *gorm.DB, w *worker, t task, do string) error {
	var item Item
	if err := tx.First(&item, t.id).Error; err != nil {
		return err
	}
	w.read(do, int64(item.Version))
	item.N++
	if err := tx.Model(&item).Update("n", item.N).Error; err != nil {
		return err
	}
	return tx.Create(&Sale{No: do, Item: t.id, N: item.N}).Error
}

func sellByChanges(ctx context.Context, tx *gorm.DB, w *worker, t task, do string) error {
	sale := &Sale{No: do, Item: t.id}
	return guard.All(countItem(w, t, do, sale), guard.Insert(sale)).Run(ctx, tx)
}

func countItem(w *worker, t task, do string, sale *Sale) guard.Change {
	return guard.Update(&Item{ID: t.id}, func(i *Item) error {
		w.read(do, int64(i.Version))
		i.N++
		sale.N = i.N
		return nil
	})
}

var errSpoiled = errors.New("spoiled")

// sellNested makes its second write in a Do inside the operation, behind one that fails.
func sellNested(ctx context.Context, tx *gorm.DB, w *worker, t task, do string) error {
	sale := &Sale{No: do, Item: t.id}
	if err := countItem(w, t, do, sale).Run(ctx, tx); err != nil {
		return err
	}
	err := w.guard.Do(ctx, t.key, func(_ context.Context, tx *gorm.DB) error {
		return errors.Join(tx.Create(&Spoil{By: do}).Error, errSpoiled)
	})
	if !errors.Is(err, errSpoiled) {
		return fmt.Errorf("a nested Do that fails returned: %w", err)
	}
	return w.guard.Do(ctx, t.key, func(_ context.Context, tx *gorm.DB) error { return tx.Create(sale).Error })
}

var errPoor = errors.New("poor")

// transfer moves money between the accounts of both keys.
func transfer(ctx context.Context, tx *gorm.DB, w *worker, t task, do string) error {
	made := &Transfer{No: do, Payer: t.id, Payee: t.other, Amount: 1 + draws(w.seed, do+" amount").Int64N(opening/2)}
	book := func(id, amount int64) guard.Change {
		return guard.Update(&Account{ID: id}, func(a *Account) error {
			w.journal.write(line{At: loaded, Do: do, Key: keyOf(accounts, id), Version: int64(a.Version)})
			if a.Balance += amount; a.Balance < 0 {
				return errPoor
			}
			return nil
		})
	}
	return guard.All(book(t.id, -made.Amount), book(t.other, made.Amount), guard.Insert(made)).Run(ctx, tx)
}
