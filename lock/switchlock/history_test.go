package switchlock_test

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/lockhistory"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/locktest"
	"github.com/belaygo/belay/lock/redislock"
	"github.com/belaygo/belay/lock/sqllock"
	"github.com/belaygo/belay/lock/switchlock"
)

// A place is where the processes of a history have their engines, and the record.
type place struct {
	Redis, SQL, Source string
	Record             string // its name in the source
	TTL                time.Duration
	Off                rule
}

// historyLease and historyTTL make a switch of some 3 seconds.
const (
	historyLease = 500 * time.Millisecond
	historyTTL   = 1500 * time.Millisecond
)

// connect opens what a process has.
func connect(where string) (switchlock.Engine, func(), error) {
	var p place
	if err := json.Unmarshal([]byte(where), &p); err != nil {
		return nil, nil, err
	}
	var closers []func()
	closeAll := func() {
		for _, f := range slices.Backward(closers) {
			f()
		}
	}
	e, err := p.connect(func(f func()) { closers = append(closers, f) })
	if err != nil {
		closeAll()
		return nil, nil, err
	}
	return e, closeAll, nil
}

func (p place) connect(cleanup func(func())) (switchlock.Engine, error) {
	engines, err := p.engines(cleanup)
	if err != nil {
		return nil, err
	}
	records, err := openPool("pgx", p.Source, cleanup)
	if err != nil {
		return nil, err
	}
	source, err := sqllock.NewSource(records, sqllock.Postgres, p.Record)
	if err != nil {
		return nil, err
	}
	e, err := switchlock.New(switchlock.Config{
		Source: p.Off.of(source), Engines: engines, First: "redis",
		Lease: historyLease, TTL: p.TTL,
	})
	if err != nil {
		return nil, err
	}
	cleanup(func() { _ = e.Close(context.Background()) })
	return e, nil
}

func (p place) engines(cleanup func(func())) (map[string]lockengine.Engine, error) {
	ctx := context.Background()
	inRedis, err := redislock.Open(&redis.UniversalOptions{Addrs: []string{p.Redis}}, redislock.Config{})
	if err != nil {
		return nil, err
	}
	cleanup(func() { _ = inRedis.Close(ctx) })
	pool, err := openPool("mysql", p.SQL+"&interpolateParams=true", cleanup)
	if err != nil {
		return nil, err
	}
	inSQL, err := sqllock.New(pool, sqllock.MySQL, sqllock.Config{})
	if err != nil {
		return nil, err
	}
	cleanup(func() { _ = inSQL.Close(ctx) })
	return map[string]lockengine.Engine{"redis": inRedis, "sql": inSQL}, nil
}

func openPool(driver, dsn string, cleanup func(func())) (*sql.DB, error) {
	pool, err := sql.Open(driver, dsn)
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(8)
	pool.SetMaxIdleConns(8)
	cleanup(func() { _ = pool.Close() })
	return pool, nil
}

// startRedis starts a server that loses nothing that it has granted.
func startRedis(t *testing.T) *teststack.RedisServer {
	t.Helper()
	return teststack.StartRedis(t, "save \"\"\nappendonly yes\nappendfsync always\n")
}

// TestSwitchHistory: four processes acquire the same locks, which move twenty times, also back.
// Meanwhile both engines are killed, paused and cut off, the database of the record is killed and
// cut off, and processes stand still for longer than a switch takes. No lock ever has two holders.
// Without one of the rules some locks have.
func TestSwitchHistory(t *testing.T) {
	t.Parallel()
	servers := startServers(t)
	t.Run("AllRules", func(t *testing.T) {
		s := servers.stage(t, "")
		for round, fault := range []func(){
			s.moveOn,
			s.fail(s.old, killed), s.hideRecord, s.fail(s.new, killed), s.fail(s.source, killed),
			s.fail(s.old, paused), s.fail(s.old, paused), s.pauseProcess, s.goBack,
			s.fail(s.new, cutOff), s.cutSource, s.fail(s.old, cutOff), s.fail(s.old, cutOff), s.goBack,
			s.fail(s.new, paused), s.fail(s.source, killed), s.fail(s.old, killed), s.goBack, s.loseAnswers,
		} {
			s.round(fault)
			t.Logf("round %d: %d switches, %d spans", round+1, s.switches, len(s.spans))
		}
		s.judge()
	})
	for _, off := range []rule{recordGetsStale, switchTakesTime} {
		t.Run("Without_"+string(off), func(t *testing.T) {
			for range 4 { // whether processes meet is up to chance
				s := servers.stage(t, off)
				s.round(s.hideRecord)
				s.finish()
				n := lockhistory.Overlaps(s.spans)
				t.Logf("%d holds, %d overlaps", len(s.spans), n)
				if n > 0 {
					return
				}
			}
			t.Error("no overlap: the test would not notice if the rule were off")
		})
	}
}

// A rule is one that can be off, for a look whether that is noticed.
type rule string

const (
	// recordGetsStale: a process relies on what it has read for no longer than a Lease.
	recordGetsStale rule = "RecordGetsStale"
	// switchTakesTime: a process needs both engines for the time of a switch.
	switchTakesTime rule = "SwitchTakesTime"
)

// of returns a source that has a process break the rule.
func (off rule) of(s switchlock.Source) switchlock.Source {
	switch off {
	case recordGetsStale:
		return &lasting{Source: s}
	case switchTakesTime:
		return hasty{s}
	}
	return s
}

// A lasting source shows what it has shown before when it can't be read.
type lasting struct {
	switchlock.Source

	last switchlock.Record
}

func (l *lasting) Read(ctx context.Context) (switchlock.Record, error) {
	r, err := l.Source.Read(ctx)
	if err != nil && l.last.Epoch > 0 {
		return l.last, nil
	}
	l.last = r
	return r, err
}

// A hasty source says of each switch that it is over.
type hasty struct{ switchlock.Source }

func (h hasty) Read(ctx context.Context) (switchlock.Record, error) {
	r, err := h.Source.Read(ctx)
	r.Settled = r.Epoch > 0
	return r, err
}

// A server can be broken. Processes reach it by its link.
type server struct {
	link                       *locktest.Link
	kill, start, pause, resume func()
}

// servers are the two engines, and the database of the record.
type servers struct {
	engines map[string]server
	records server
	direct  place // without the links
}

func startServers(t *testing.T) servers {
	t.Helper()
	redis := startRedis(t)
	table, records := teststack.StartDatabase(t, "switch", "mariadb"), teststack.StartDatabase(t, "record", "postgres")
	migrate(t, "mysql", table.DSN, sqllock.MySQL)
	migrate(t, "pgx", records.DSN, sqllock.Postgres)
	return servers{
		engines: map[string]server{
			"redis": {locktest.NewLink(t, redis.Addr), redis.Kill, redis.Start, redis.Pause, redis.Resume},
			"sql":   ofDatabase(t, table),
		},
		records: ofDatabase(t, records),
		direct:  place{Redis: redis.Addr, SQL: table.DSN, Source: records.DSN, TTL: historyTTL},
	}
}

func ofDatabase(t *testing.T, db *teststack.Database) server {
	t.Helper()
	do := func(f func(testing.TB)) func() { return func() { f(t) } }
	return server{locktest.NewLink(t, testdb.AddrOf(t, db.DSN)), do(db.Kill), do(db.Start), do(db.Pause), do(db.Resume)}
}

func migrate(t *testing.T, driver, dsn string, d sqllock.Dialect) {
	t.Helper()
	pool, err := openPool(driver, dsn, t.Cleanup)
	if err == nil {
		err = sqllock.Migrate(t.Context(), pool, d)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A stage is a history's servers, processes and operator.
type stage struct {
	servers

	t        *testing.T
	first    *locktest.Link // to the source, for the first process alone
	operator switchlock.Engine
	children []*lockhistory.Child
	spans    []lockhistory.Span
	switches int
}

// stage starts the processes, which break a rule, and the operator, who does not.
func (v servers) stage(t *testing.T, off rule) *stage {
	t.Helper()
	s := &stage{servers: v, t: t, first: locktest.NewLink(t, v.records.link.Addr)}
	direct := v.direct
	direct.Record = cmp.Or(string(off), "history")
	operator, closeAll, err := connect(text(t, direct))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(closeAll)
	s.operator = operator
	testwait.Until(t, "the first record", func() bool { return operator.State().Epoch > 0 })
	for i := range 4 {
		p := direct
		p.Off = off
		p.Redis = v.engines["redis"].link.Addr
		p.SQL = testdb.By(t, p.SQL, v.engines["sql"].link.Addr)
		p.Source = testdb.By(t, p.Source, v.records.link.Addr)
		if i == 0 {
			p.Source = testdb.By(t, p.Source, s.first.Addr)
		}
		s.children = append(s.children, lockhistory.Start(t, lockhistory.Job{
			Where: text(t, p), Keys: []string{"s1", "s2", "s3", "s4"},
			Workers: 8, Hold: 4 * time.Millisecond, TTL: historyTTL,
		}))
	}
	return s
}

func text(t *testing.T, p place) string {
	t.Helper()
	where, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(where)
}

// round moves the locks while there is a fault, and waits until all processes get locks.
func (s *stage) round(fault func()) {
	s.t.Helper()
	s.everyoneIsServed()
	fault()
	s.settled()
}

func (s *stage) settled() {
	s.t.Helper()
	testwait.Until(s.t, "settled", func() bool { return s.operator.State().Settled })
}

// moveOn moves the locks to the engine where they are not.
func (s *stage) moveOn() {
	s.t.Helper()
	s.move(map[string]string{"redis": "sql", "sql": "redis"}[s.operator.State().To])
}

// move presses the key, and returns when the operator's own process knows.
func (s *stage) move(to string) {
	s.t.Helper()
	r, err := s.operator.To(s.t.Context(), switchlock.Change{To: to, By: "test"})
	if err != nil {
		s.t.Fatal(err)
	}
	s.switches++
	testwait.Until(s.t, "learned", func() bool { return s.operator.State().Epoch >= r.Epoch })
}

// everyoneIsServed waits until each process has had a lock that it asked for from now on.
func (s *stage) everyoneIsServed() {
	s.t.Helper()
	from := lockhistory.Now()
	for _, c := range s.children {
		s.isServed(c, from)
	}
}

func (s *stage) isServed(c *lockhistory.Child, from int64) {
	s.t.Helper()
	for served := false; !served; {
		span := c.Next(s.t)
		s.spans = append(s.spans, span)
		served = span.Asked > from && span.End == lockhistory.Released
	}
}

// hideRecord keeps the record from the first process from before the locks move until the
// others have them in the new engine alone.
func (s *stage) hideRecord() {
	heal := s.first.Fault(locktest.RefuseDials)
	defer heal()
	s.moveOn()
	s.settled()
	from := lockhistory.Now()
	for _, c := range s.children[1:] {
		s.isServed(c, from)
	}
	s.spans = append(s.spans, lockhistory.Observe(s.t, s.children[1:], 50)...)
}

func (s *stage) old() server    { return s.engines[s.operator.State().From] }
func (s *stage) new() server    { return s.engines[s.operator.State().To] }
func (s *stage) source() server { return s.records }

// fail has a server fail while the locks move.
func (s *stage) fail(which func() server, fail func(server) (heal func())) func() {
	return func() {
		s.moveOn()
		defer fail(which())()
		s.settled()
	}
}

func killed(v server) (heal func()) {
	v.kill()
	v.start()
	return func() {}
}

func paused(v server) (heal func()) {
	v.pause()
	return v.resume
}

func cutOff(v server) (heal func()) { return v.link.Fault(locktest.SwallowAnswers) }

func (s *stage) cutSource()   { s.sourceFails(locktest.RefuseDials) }
func (s *stage) loseAnswers() { s.sourceFails(locktest.SwallowAnswers) }

// sourceFails keeps the record from all processes for longer than a Lease.
func (s *stage) sourceFails(f locktest.Fault) {
	s.moveOn()
	heal := s.records.link.Fault(f)
	<-time.After(3 * historyLease)
	heal()
}

// pauseProcess stops a process while the others switch.
func (s *stage) pauseProcess() {
	s.moveOn()
	c := s.children[s.switches%len(s.children)]
	c.Signal(s.t, syscall.SIGSTOP)
	defer c.Signal(s.t, syscall.SIGCONT)
	s.settled()
}

// goBack switches back to the old engine before the switch is settled.
func (s *stage) goBack() {
	s.moveOn()
	<-time.After(historyLease + historyTTL/2)
	s.move(s.operator.State().From)
}

// finish ends the processes.
func (s *stage) finish() {
	for _, c := range s.children {
		c.Stop()
	}
	for _, c := range s.children {
		s.spans = append(s.spans, c.Finish()...)
	}
}

func (s *stage) judge() {
	s.t.Helper()
	s.finish()
	for _, wrong := range lockhistory.Judge(s.spans, lockhistory.Fault{Skew: time.Second}) {
		s.t.Error(wrong)
	}
	overlaps, refused, lost := lockhistory.Overlaps(s.spans), 0, 0
	for _, span := range s.spans {
		if span.Err != "" {
			refused++
		}
		if span.End == lockhistory.Lost {
			lost++
		}
	}
	if overlaps > 0 {
		s.t.Errorf("%d times two holders believed in one lock", overlaps)
	}
	s.t.Logf("belay switch: %d switches, %d holds, %d lost, %d acquires failed, %d overlaps",
		s.switches, len(s.spans)-refused, lost, refused, overlaps)
}
