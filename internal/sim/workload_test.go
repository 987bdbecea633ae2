package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/sim/simdb"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
)

// A workload is a kind of operation.
type workload struct {
	name string
	run  func(ctx context.Context, p *process, o *op) error
	// tables of which it writes once the row that the key names
	rows []string
	// tables of which it writes the row of the other key, too, under that key
	other []string
	// tables into which it inserts a row that is its request's own
	own []string
	// picky is one whose change fails if it is not its caller's first
	picky bool
	// panics is one whose change panics if it is its caller's first
	panics bool
	// slow is one whose change takes long
	slow bool
	// combines is one that may share its transaction
	combines bool
	// boxed is one that is for the outbox alone
	boxed bool
	// bare is one that takes no lock
	bare bool
	// meets is one whose row may be another request's
	meets bool
	// serves is one that serves a request
	serves bool
	// answers is one that gets an answer, by Once
	answers bool
	// keyed is one that takes the lock of its request, under which no row is but the claim
	keyed bool
	// named is a keyed one whose rows are named under the key, which it takes, too
	named bool
	// calls is one with a call of the bank in its middle
	calls bool
	// fails is one whose settlement fails if it is its caller's first
	fails bool
	// sends is one that may send a message
	sends bool
	// strays is one that leaves a goroutine behind
	strays bool
}

// change is a workload that applies a Change.
func change(name, table string, of func(o *op) guard.Change, opts ...guard.Option) *workload {
	return &workload{name: name, rows: []string{table}, sends: true, run: func(ctx context.Context, p *process, o *op) error {
		return p.guard.Apply(ctx, o.key, o.with(of(o)), append(opts, guard.Wait(o.wait))...)
	}}
}

// custom is a workload that does an operation, which may run again.
func custom(name string, rows []string, do func(ctx context.Context, tx *gorm.DB, p *process, o *op) error, opts ...guard.Option) *workload {
	return &workload{name: name, rows: rows, sends: true, run: func(ctx context.Context, p *process, o *op) error {
		all := append(opts, guard.Wait(o.wait), guard.Retries(2), guard.Protects(&Order{No: o.key}))
		for _, table := range rows {
			if table == "stocks" {
				all = append(all, guard.Protects(&Stock{ID: o.number()}))
			}
		}
		return p.guard.Do(ctx, o.key, func(ctx context.Context, tx *gorm.DB) error {
			if err := do(ctx, tx, p, o); err != nil {
				return err
			}
			return o.send(ctx, tx)
		}, all...)
	}}
}

var workloads = append([]*workload{
	{name: "publish", boxed: true, run: func(ctx context.Context, p *process, o *op) error {
		return p.box.Publish(ctx, notify.Event{
			ID: o.name, Verdict: notify.VerdictLost, Outcome: notify.OutcomeCommitted, Service: "sim", Key: o.name, Count: 1, CaughtAt: time.Now(),
		})
	}},
	{name: "hold", run: hold},
	change("insert", "orders", func(o *op) guard.Change { return guard.Insert(&Order{No: o.key}) }),
	change("insert and remember", "orders", func(o *op) guard.Change { return guard.Insert(&Order{No: o.key}) }, guard.Remember(time.Minute)),
	change("insert with a key", "labels", func(o *op) guard.Change { return guard.Insert(&Label{Code: o.key, Amount: 5}) }),
	change("update", "stocks", func(o *op) guard.Change { return guard.Update(&Stock{ID: o.number()}, takeStock) }),
	change("update with a stamp", "wares", func(o *op) guard.Change { return guard.Update(&Ware{ID: o.number()}, takeWare) }),
	custom("order and take", []string{"orders", "stocks"}, func(_ context.Context, tx *gorm.DB, _ *process, o *op) error {
		if err := order(tx, o); err != nil {
			return err
		}
		return take(tx, o)
	}),
	custom("take and order", []string{"orders", "stocks"}, func(_ context.Context, tx *gorm.DB, _ *process, o *op) error {
		if err := take(tx, o); err != nil {
			return err
		}
		return order(tx, o)
	}),
	custom("nested", []string{"orders", "stocks"}, func(ctx context.Context, tx *gorm.DB, p *process, o *op) error {
		if err := order(tx, o); err != nil {
			return err
		}
		return p.guard.Do(ctx, o.key, func(_ context.Context, tx *gorm.DB) error { return take(tx, o) })
	}),
	custom("raw update", []string{"stocks"}, func(_ context.Context, tx *gorm.DB, p *process, o *op) error {
		var left int
		if err := tx.Raw("SELECT "+quoted(p.dialect, "`left`")+" FROM stocks WHERE id = ?", o.number()).Scan(&left).Error; err != nil {
			return err
		}
		return tx.Exec(quoted(p.dialect, "UPDATE stocks SET `left` = ?, version = version + 1 WHERE id = ?"), left-1, o.number()).Error
	}),
	{name: "without the lock", rows: []string{"orders", "stocks"}, bare: true, run: func(ctx context.Context, p *process, o *op) error {
		return p.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			if err := take(tx, o); err != nil {
				return err
			}
			return order(tx, o)
		})
	}},
}, slices.Concat(transfers(), requests(), calling(), straying())...)

func order(tx *gorm.DB, o *op) error { return tx.Create(&Order{No: o.key}).Error }

func take(tx *gorm.DB, o *op) error {
	var s Stock
	if err := tx.Take(&s, o.number()).Error; err != nil {
		return err
	}
	return tx.Model(&s).Update("left", s.Left-1).Error
}

func takeStock(s *Stock) error { s.Left--; return nil }
func takeWare(w *Ware) error   { w.Left--; return nil }

// hold is an operation of the first layer alone.
func hold(ctx context.Context, p *process, o *op) error {
	var lease *lock.Lease
	var err error
	if o.wait == 0 {
		lease, err = p.locker.TryAcquire(ctx, o.key)
	} else {
		waited, cancel := context.WithTimeout(ctx, o.wait)
		defer cancel()
		lease, err = p.locker.Acquire(waited, o.key)
	}
	if err != nil {
		return err
	}
	p.pause(ctx, o, "WORK")
	return errors.Join(lease.Err(), lease.Release(ctx))
}

// themes are workloads that meet on the rows of a key.
var themes = [][]string{
	{"hold"},
	{"publish"},
	{"insert", "insert and remember"},
	{"insert with a key"},
	{"update"},
	{"update", "update", "order and take"},
	{"update with a stamp"},
	{"order and take", "take and order", "nested"},
	{"order and take", "without the lock"},
	{"order and take", "insert", "update"},
	{"transfer"},
	{"transfer", "transfer with a stamp", "take from an account"},
	{"order for another", "order for another", "insert", "update"},
	{"combined take"},
	{"combined take with a stamp"},
	{"combined take", "combined take or refusal", "take from an account"},
	{"combined take", "transfer", "combined take", "account without the lock"},
	{"combined order", "combined order", "combined label"},
	{"combined take", "slow combined take"},
	{"sale", "slow sale", "slow sale"},
	{"combined label"},
	{"combined insert", "combined insert", "insert"},
	{"sale"},
	{"sale", "sale or refusal", "sale of one", "account without the lock"},
	{"sale", "sale", "combined take", "combined order", "transfer"},
	{"sale of one", "sale of one", "without the lock"},
	{"sale with a stamp", "combined take with a stamp"},
	{"request: take"},
	{"request: take", "request: order", "request: raw"},
	{"request: order of all", "request: order of all", "request: take"},
	{"request: take with a stamp", "request: take", "take from an account"},
	{"request: transfer", "request: take", "transfer"},
	{"request: take or refusal", "request: panic", "request: take"},
	{"request: take under its own key", "once: take", "request: take"},
	{"request: take", "account without the lock"},
	{"once: take"},
	{"once: take", "once: order", "request: take"},
	{"once: decline", "once: take or decline", "once: take"},
	{"once: panic", "once: take or refusal", "once: take"},
	{"once: transfer", "once: take", "transfer"},
	{"call: pay"},
	{"call: pay", "call: pay", "call: pay or failure", "call: pay or panic"},
	{"call: pay and take", "call: pay or refusal", "call: pay", "take from an account"},
	{"stray order", "stray order or refusal"},
}

func workloadOf(name string) *workload {
	for _, w := range workloads {
		if w.name == name {
			return w
		}
	}
	panic("no workload " + name)
}

// A plan is what a schedule has beside its choices. It follows from the seed.
type plan struct {
	seed     uint64
	server   simdb.Personality
	dialect  string
	faults   int
	outbox   bool
	knobs    simdb.Knobs
	second   bool     // odd processes are connected to another node
	also     []action // faults beside the ordinary ones
	policy   guard.Policy
	purges   bool          // old requests are
	until    time.Duration // calls may begin
	calm     int           // the step at which faults end, 0: when all callers have ended
	lasting  lasting       // stays then
	declined string        // the request that the bank declines
	relays   int           // of messages
	// consumers handle messages
	consumers int
	work      [][][]spec // of each process, of each caller
}

// A spec is one operation that a caller makes.
type spec struct {
	work  *workload
	key   string
	wait  time.Duration
	rest  time.Duration // before it begins
	sends bool          // a message
	keyed bool          // with the key of the rows, if its operation has that
	bad   bool          // the broker rejects it
	request
}

var waits = []time.Duration{0, 0, time.Second, 20 * time.Second}

// servers are the databases, those that are met more often several times.
var servers = []simdb.Personality{simdb.MariaDB, simdb.MariaDB, simdb.MariaDB, simdb.MariaDBSnapshot, simdb.PostgreSQL}

// newPlan chooses what is done by whom.
func newPlan(seed uint64) plan {
	r := rand.New(rand.NewPCG(seed, 0))
	p := plan{seed: seed, faults: 1 + r.IntN(5)}
	keys := []string{"k", "l"}[:1+r.IntN(8)/7]
	theme := themes[r.IntN(len(themes))]
	p.server = servers[r.IntN(len(servers))]
	p.dialect = "mysql"
	if p.server == simdb.PostgreSQL {
		p.dialect = "postgres"
	}
	if theme[0] != "hold" && r.IntN(8) == 0 {
		p.policy = guard.DBOnly
	}
	if p.outbox = theme[0] == "publish"; p.outbox {
		p.also = []action{replace}
	}
	p.knobs.VisibleBeforeDurable = r.IntN(3) == 0
	p.outbox = p.outbox || theme[0] != "hold" && r.IntN(16) == 0
	if !p.outbox && r.IntN(12) == 0 { // the relay sets the isolation of its next transaction, which is another session's then
		p.knobs.Pooler = 3
	}
	if workloadOf(theme[0]).strays { // whose statements wait for a mutex while a COMMIT is under way
		p.knobs = simdb.Knobs{}
	}
	crew := workloadOf(theme[0]).combines
	if workloadOf(theme[0]).other != nil {
		keys = []string{"k", "l"}
	}
	serves := workloadOf(theme[0]).serves
	if serves {
		keys = []string{"k", "k", "k", "l"}
		p.outbox, p.purges = false, r.IntN(3) == 0
	}
	calls := workloadOf(theme[0]).calls
	p.until = untils[r.IntN(len(untils))]
	p.declined = []string{"", "r", "s"}[r.IntN(3)]
	sends := r.IntN(3) == 0
	for range 2 + r.IntN(4)/3 {
		var callers [][]spec
		n := 1 + r.IntN(3)/2
		if crew && len(p.work) == 0 {
			n += 1 + r.IntN(3)
		}
		for range n {
			var specs []spec
			several := 1 + r.IntN(3)/2
			if calls {
				several++
			}
			for i := range several {
				specs = append(specs, spec{work: workloadOf(theme[r.IntN(len(theme))]), key: keys[r.IntN(len(keys))], wait: waits[r.IntN(len(waits))]})
				if serves {
					specs[len(specs)-1].request = newRequest(r)
				}
				if sends {
					specs[len(specs)-1].sends = specs[len(specs)-1].work.sends && r.IntN(3) > 0
				}
				if calls {
					specs[len(specs)-1].prints()
				}
				if calls && i > 0 {
					specs[len(specs)-1].rest = rests[r.IntN(len(rests))]
				}
				if last := &specs[len(specs)-1]; crew && last.wait == 0 && r.IntN(4) > 0 {
					last.wait = waits[2+r.IntN(2)]
				}
			}
			callers = append(callers, specs)
		}
		p.work = append(p.work, callers)
	}
	if r.IntN(3) == 0 {
		p.calm, p.lasting = 10+r.IntN(200), lasting(r.IntN(int(noProcess)+1))
	}
	p.mails()
	return p
}

// database reports whether a plan needs one.
func (p plan) database() bool {
	return p.some(func(s spec) bool { return s.work.writes() || s.work.boxed })
}

// An op is one call of the product.
type op struct {
	spec
	name     string
	own      string // its request's own name, the same after its process was killed
	first    bool   // of its caller
	took     time.Duration
	returned time.Time
	process  *process
	owners   []string
	began    int
	ended    int // 0: its process was killed before
	err      error
	cut      map[string]bool  // calls that were not answered
	breaks   int              // of its connections to the database, since its last write
	looked   map[string][]int // when the question who has the lock on a key was answered

	running  bool // its operation is; guarded by world.mu
	runs     int  // of its operation
	answer   guard.Answer[receipt]
	called   int64 // the attempt of its last call of the bank
	calledAt time.Time
	got      bool               // that was answered
	giveUp   context.CancelFunc // ends its context; guarded by world.mu
	gaveUp   bool
	gaveUpAt time.Time
	attempts []*attempt
	leaders  []*op // who ran transactions in which its rows were read or written
	commits  []*commit
	events   []notify.Event
}

func (o *op) String() string { return o.name }

// missed notes that a call was not answered.
func (o *op) missed(text string) {
	if o.cut == nil {
		o.cut = make(map[string]bool)
	}
	o.cut[text] = true
}

func (o *op) look(key string, step int) {
	if o.looked == nil {
		o.looked = make(map[string][]int)
	}
	o.looked[key] = append(o.looked[key], step)
}

// number is what a key has as the number of rows.
func (o *op) number() int64 { return numberOf(o.key) }

func numberOf(key string) int64 { return int64(key[0]-'k') + 1 }
