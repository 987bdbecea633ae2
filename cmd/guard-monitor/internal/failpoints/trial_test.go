//go:build failpoints

package failpoints_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/notify"
)

const (
	shortTTL = 4 * time.Second  // of a victim whose lock has to expire, or to be renewed
	longTTL  = 30 * time.Second // of processes that renew nothing and die holding nothing
)

// A trial is one death: a victim plays a situation and dies at a point of it.
type trial struct {
	*testing.T
	*stage
	situation
	point  string
	do     operation
	db     *gorm.DB // of the trial alone, with the tables and the outbox
	dsn    string
	key    string
	dead   *process
	heir   *process            // the lock's holder while the victim dies, or nil
	shared int                 // changes of a dead crew that were committed
	ttl    time.Duration       // of its lock
	left   map[string][]string // owners of the locks that the dead has left
}

func newTrial(t *testing.T, s *stage, on string, at situation, point string, do operation) *trial {
	t.Helper()
	c := &trial{T: t, stage: s, situation: at, point: point, do: do, key: teststack.Key(t, string(do)), left: make(map[string][]string)}
	c.dsn, c.db = database(t, on)
	for _, model := range []any{&Order{}, &Stock{}, &Note{}, &Charge{}} {
		if err := c.db.Migrator().CreateTable(model); err != nil {
			t.Fatal(err)
		}
	}
	if err := migrate(t.Context(), c.db); err != nil {
		t.Fatal(err)
	}
	if err := c.db.Create([]*Stock{{ID: stockID, Left: inStock}, {ID: otherID}}).Error; err != nil {
		t.Fatal(err)
	}
	return c
}

// run plays the situation to the death, has other processes carry on, and checks what is
// there at the end.
func (c *trial) run() {
	plays[c.name](c)
	c.awaitDeath(c.dead)
	c.pending()
	c.sent(c.from(c.effect, c.point))
	c.lockExpires()
	if slices.Contains(inherited, c.point) {
		c.awaitDeath(c.start("second victim", c.point, c.role()))
	}
	reported := c.heirEnds()

	c.answeredEarly()
	c.repeated()
	c.rows()
	c.charged()
	c.sent(true)
	c.events(reported)
	for _, key := range c.keys() {
		owners := c.redis.HKeys(c.Context(), key).Val()
		if len(owners) > 0 && !slices.Equal(owners, c.left[key]) { // a repeat may need no lock
			c.Errorf("the lock on %s is left in Redis, though its last holder has released it", key)
		}
	}
}

// keys returns those of the operation.
func (c *trial) keys() []string {
	switch c.do {
	case transfer:
		return []string{c.key, c.role().Other}
	case request, refusal:
		return []string{requested(c.key).Key(), c.key}
	case payment:
		return []string{requested(c.key).Key(), c.key, c.role().Other}
	}
	return []string{c.key}
}

// answeredEarly checks that nobody was told of a commit that there was not.
func (c *trial) answeredEarly() {
	c.Helper()
	if c.from(c.effect, c.point) {
		return
	}
	for _, line := range c.dead.Lines() {
		if strings.HasPrefix(line, "ended done") {
			c.Error("the victim has said that it is done, and nothing was committed")
		}
	}
}

// repeated has two processes make the same request again, twice and once. What has taken
// effect ends as a repeat, and all answers are equal.
func (c *trial) repeated() {
	c.Helper()
	calls, before := 1, 0
	if c.heir != nil || c.from(c.effect, c.point) {
		before = 1
	}
	if c.combines() {
		calls, before = crewSize, c.committed(before)
		c.shared = before
	}
	var answers []string
	role := c.role()
	role.Carry, role.TTL = true, longTTL
	for _, runs := range []int{2, 1} {
		role.Runs = runs
		survivor := c.start("survivor", "", role)
		want := slices.Repeat([]string{c.again()}, runs*calls)
		for n := range calls - before {
			want[n] = c.anew()
		}
		got := survivor.await("ended", len(want))
		if slices.Sort(got[:calls]); !slices.Equal(got, want) {
			c.Errorf("the same request again ends in %q, want %q", got, want)
		}
		survivor.await("closed", 1)
		answers = append(answers, survivor.answers()...)
		before = calls
		if c.do != request && c.do != refusal && c.do != payment {
			break
		}
	}
	answers = append(answers, c.dead.answers()...)
	if given := slices.Compact(slices.Clone(answers)); len(given) > 1 || len(given) == 0 && (c.do == request || c.do == refusal || c.do == payment && !c.call.undecided) {
		c.Errorf("the answers are %q", answers)
	}
}

// combines reports whether the operation is of several callers.
func (c *trial) combines() bool { return c.do == crew || c.do == requests }

// committed returns how many of the dead crew's changes were committed: none, or those of
// all who had their turns in time.
func (c *trial) committed(some int) int {
	c.Helper()
	table := "orders"
	if c.do == requests {
		table = "belay_once"
	}
	var changes int64
	if err := c.db.Table(table).Count(&changes).Error; err != nil {
		c.Fatal(err)
	}
	if (changes > 0) != (some > 0) {
		c.Errorf("%d changes of the dead crew were committed", changes)
	}
	return int(changes)
}

func (c *trial) awaitDeath(p *process) {
	c.Helper()
	if !p.died() {
		c.Fatalf("the %s did not die at %s", p.Name(), c.point)
	}
	c.deaths.Add(1)
}

// heirEnds has the heir, if there is one, do its operation after the victim's death. It
// returns how many events the heir reports: one if the victim's has taken effect on its only
// row.
func (c *trial) heirEnds() (events int) {
	c.Helper()
	if c.heir == nil {
		return 0
	}
	want := "done"
	switch {
	case !c.from(c.effect, c.point):
	case c.do == custom: // the blind spot severalRows
		want = "overtaken"
		c.excused.Add(1)
	default:
		want, events = "intercepted", 1
	}
	c.heir.Proceed()
	if got := c.heir.await("ended", 1)[0]; !strings.HasPrefix(got, want) {
		c.Errorf("the operation of the one who has the lock ends in %q, want %s", got, want)
	}
	c.heir.await("closed", 1)
	return events
}

// role is that of an instance that does the operation once.
func (c *trial) role() serviceRole {
	return serviceRole{
		DSN: c.dsn, BoxDSN: c.dsn, AMQP: c.amqp, Redis: c.addrs, Key: c.key, Other: c.key + ":other", Do: c.do, TTL: shortTTL, Runs: 1,
		Remember: c.name == "remembered", Forget: c.name == "repeat", Call: c.call.role(),
	}
}

func (c *trial) start(name, point string, r serviceRole) *process {
	c.Helper()
	return start(c.T, name, point, role{Service: &r})
}

// victim starts the process that dies at the trial's point.
func (c *trial) victim(r serviceRole) *process {
	c.Helper()
	c.ttl = r.TTL
	c.dead = c.start("victim", fmt.Sprintf("%s:%d", c.point, c.passed(c.point, c.do)), r)
	return c.dead
}

// rival has a process do the operation, which takes effect.
func (c *trial) rival() {
	c.Helper()
	r := c.role()
	r.Carry, r.TTL = true, longTTL
	p := c.start("rival", "", r)
	if got := p.await("ended", 1)[0]; got != "done" {
		c.Fatalf("the rival's operation ends in %q, want done", got)
	}
	p.await("closed", 1)
}

// loseLock has a victim that stands lose its lock.
func (c *trial) loseLock() {
	c.Helper()
	c.dead.await("stands", 1)
	for _, key := range c.keys() {
		if n, err := c.redis.Del(c.Context(), key).Result(); err != nil || n != 1 {
			c.Fatalf("the victim's lock is not in Redis: %v", err)
		}
	}
}

// lockExpires checks that a lock which the dead has left is there for its ttl at most.
func (c *trial) lockExpires() {
	c.Helper()
	for _, key := range c.keys() {
		left, err := c.redis.PTTL(c.Context(), key).Result()
		switch {
		case err != nil:
			c.Fatal(err)
		case left == -1, left > c.ttl: // -2: there is none
			c.Fatalf("the lock of the dead lasts for %v", left)
		}
		c.left[key] = c.redis.HKeys(c.Context(), key).Val()
	}
}

// rows checks that the operation has taken effect once, as a whole.
func (c *trial) rows() {
	c.Helper()
	var orders, notes int64
	var stock, other Stock
	for _, err := range []error{
		c.db.Model(&Order{}).Count(&orders).Error, c.db.Model(&Note{}).Count(&notes).Error,
		c.db.Take(&stock, stockID).Error, c.db.Take(&other, otherID).Error,
	} {
		if err != nil {
			c.Fatal(err)
		}
	}
	type effect struct {
		orders, notes, sold int64
		version             int64
		moved               int64
	}
	want := map[operation]effect{
		insert: {1, 0, 0, 1, 0}, update: {0, 0, 1, 2, 0}, custom: {1, 1, 1, 2, 0},
		transfer: {0, 0, 1, 2, 1}, crew: {crewSize, 0, crewSize, 1 + crewSize, 0}, requests: {0, 0, crewSize, 1 + crewSize, 0}, request: {0, 0, 1, 2, 0}, refusal: {0, 0, 0, 1, 0},
		payment: {0, 0, 1, 2, 1}, sending: {0, 0, 1, 2, 0},
	}[c.do]
	switch {
	case c.call == nil:
	case c.call.undecided: // reserved
		want.moved = 0
	case c.call.refuses: // and given back
		want = effect{version: 3}
	}
	if got := (effect{orders, notes, inStock - int64(stock.Left), int64(stock.Version), int64(other.Left)}); got != want {
		c.Errorf("orders, notes, sold, version and moved are %v, want %v", got, want)
	}
}

// events checks which events of the key the monitor has: those that the heir has reported,
// of an overlap, and the victim's, if it was stored.
func (c *trial) events(ofHeir int) {
	c.Helper()
	want := slices.Repeat([]notify.Verdict{notify.VerdictOverlap}, ofHeir)
	if c.from(c.event, c.point) {
		want = append(want, c.says)
	} else if c.blind != nothing {
		c.excused.Add(1)
	}
	var got []notify.Event
	for _, key := range c.keys() {
		for _, ev := range c.reported(c.T, key) { // an event has all keys of its operation
			if !slices.ContainsFunc(got, func(known notify.Event) bool { return known.ID == ev.ID }) {
				got = append(got, ev)
			}
		}
	}
	var verdicts []notify.Verdict
	for _, ev := range got {
		verdicts = append(verdicts, ev.Verdict)
		if c.combines() && (ev.Count < min(2, c.shared) || ev.Count > c.shared) {
			c.Errorf("the event of a crew counts %d callers, %d changes were committed", ev.Count, c.shared)
		}
	}
	slices.Sort(verdicts)
	slices.Sort(want)
	if !slices.Equal(verdicts, want) {
		c.Errorf("the monitor has events of %q, want %q: %+v", verdicts, want, got)
	}
	for _, p := range []*process{c.dead, c.heir} {
		if id, ok := p.intercepted(); ok && !slices.ContainsFunc(got, func(ev notify.Event) bool { return ev.ID == id }) {
			c.Errorf("the error of the %s names event %s, which the monitor does not have", p.Name(), id)
		}
	}
}

// database returns an empty database of the trial's own.
func database(t *testing.T, on string) (dsn string, db *gorm.DB) {
	t.Helper()
	switch on {
	case "mariadb":
		dsn = teststack.MySQL(t)
	case "mysql":
		dsn = teststack.MySQL9(t)
	case "postgres":
		dsn = teststack.Postgres(t)
		return dsn, testdb.OpenPostgres(t, dsn)
	default:
		t.Fatalf("%s: no such database as %q", onVariable, on)
	}
	return dsn, testdb.OpenMySQL(t, dsn)
}
