package switchlock_test

import (
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
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/locktest"
	"github.com/belaygo/belay/lock/redislock"
	"github.com/belaygo/belay/lock/sqllock"
	"github.com/belaygo/belay/lock/switchlock"
)

// A place is where the processes of a history have their engines, and the record.
type place struct {
	Redis, SQL, Source string
	TTL                time.Duration
}

// historyLease and historyTTL make a switch of some 3 seconds.
const (
	historyLease = 500 * time.Millisecond
	historyTTL   = 1500 * time.Millisecond
)

// connect opens what a process has.
func connect(where string) (*switchlock.Engine, func(), error) {
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

func (p place) connect(cleanup func(func())) (*switchlock.Engine, error) {
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
	records, err := openPool("pgx", p.Source, cleanup)
	if err != nil {
		return nil, err
	}
	source, err := sqllock.NewSource(records, sqllock.Postgres, "history")
	if err != nil {
		return nil, err
	}
	e, err := switchlock.New(switchlock.Config{
		Source: source, Engines: map[string]lock.Engine{"redis": inRedis, "sql": inSQL}, First: "redis",
		Lease: historyLease, TTL: p.TTL,
	})
	if err != nil {
		return nil, err
	}
	cleanup(func() { _ = e.Close(ctx) })
	return e, nil
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

// A stage is a history's servers, processes and operator.
type stage struct {
	t        *testing.T
	redis    *teststack.RedisServer
	table    *teststack.Database
	source   *locktest.Link
	first    *locktest.Link // to the source, for the first process alone
	operator *switchlock.Engine
	children []*lockhistory.Child
	spans    []lockhistory.Span
	switches int
}

// TestSwitchHistory: four processes acquire the same locks, which move twenty times, also back.
// Meanwhile both engines and the source are killed, cut off and slow, and processes stand still
// for longer than a switch takes. No lock ever has two holders.
func TestSwitchHistory(t *testing.T) {
	s := newStage(t)
	for round, fault := range []func(){
		nil, s.killOld, s.hideRecord, s.killNew, s.cutSource, s.pauseProcess, s.goBack, s.killOld, s.loseAnswers, s.hideRecord,
		s.goBack, s.killNew, s.pauseProcess, s.cutSource, s.goBack, s.killOld, s.loseAnswers,
	} {
		s.round(fault)
		t.Logf("round %d: %d switches, %d spans", round+1, s.switches, len(s.spans))
	}
	s.judge()
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, redis: startRedis(t), table: teststack.StartDatabase(t, "switch", "mariadb")}
	records := teststack.Postgres(t)
	s.source = locktest.NewLink(t, testdb.AddrOf(t, records))
	migrate(t, "mysql", s.table.DSN, sqllock.MySQL)
	migrate(t, "pgx", records, sqllock.Postgres)
	of := func(source string) string {
		where, err := json.Marshal(place{s.redis.Addr, s.table.DSN, source, historyTTL})
		if err != nil {
			t.Fatal(err)
		}
		return string(where)
	}
	operator, closeAll, err := connect(of(records))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(closeAll)
	s.operator = operator
	testwait.Until(t, "the first record", func() bool { return operator.State().Epoch > 0 })
	job := lockhistory.Job{
		Where: of(testdb.By(t, records, s.source.Addr)), Keys: []string{"s1", "s2", "s3", "s4"},
		Workers: 8, Hold: 4 * time.Millisecond, TTL: historyTTL,
	}
	s.first = locktest.NewLink(t, s.source.Addr)
	for i := range 4 {
		job := job
		if i == 0 {
			job.Where = of(testdb.By(t, records, s.first.Addr))
		}
		s.children = append(s.children, lockhistory.Start(t, job))
	}
	return s
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

// round moves the locks while there is a fault, and waits until all processes get locks.
func (s *stage) round(fault func()) {
	s.t.Helper()
	s.everyoneIsServed()
	if fault != nil {
		fault()
	} else {
		s.moveOn()
	}
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
	testwait.Until(s.t, "settled", func() bool { return s.operator.State().Settled })
	s.isServed(s.children[1], lockhistory.Now())
}

func (s *stage) killOld() { s.kill(func() string { return s.operator.State().From }) }
func (s *stage) killNew() { s.kill(func() string { return s.operator.State().To }) }

// kill kills an engine while the locks move, and starts it again.
func (s *stage) kill(which func() string) {
	s.moveOn()
	engine := which()
	if engine == "redis" {
		s.redis.Kill()
		s.redis.Start()
		return
	}
	s.table.Kill(s.t)
	s.table.Start(s.t)
}

func (s *stage) cutSource()   { s.sourceFails(locktest.RefuseDials) }
func (s *stage) loseAnswers() { s.sourceFails(locktest.SwallowAnswers) }

// sourceFails keeps the record from all processes for longer than a Lease.
func (s *stage) sourceFails(f locktest.Fault) {
	s.moveOn()
	heal := s.source.Fault(f)
	<-time.After(3 * historyLease)
	heal()
}

// pauseProcess stops a process while the others switch.
func (s *stage) pauseProcess() {
	s.moveOn()
	c := s.children[s.switches%len(s.children)]
	c.Signal(s.t, syscall.SIGSTOP)
	defer c.Signal(s.t, syscall.SIGCONT)
	testwait.Until(s.t, "settled", func() bool { return s.operator.State().Settled })
}

// goBack switches back to the old engine before the switch is settled.
func (s *stage) goBack() {
	s.moveOn()
	<-time.After(historyLease + historyTTL/2)
	s.move(s.operator.State().From)
}

func (s *stage) judge() {
	s.t.Helper()
	for _, c := range s.children {
		c.Stop()
	}
	for _, c := range s.children {
		s.spans = append(s.spans, c.Finish()...)
	}
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
