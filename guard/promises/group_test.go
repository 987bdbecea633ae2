package promises_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
)

// eachConsistency runs f on instances on the three members of a group that all take writes.
// The instances share their locks. The members serve what they have, or all that was
// committed elsewhere before.
func eachConsistency(t *testing.T, f func(t *testing.T, members []*env, waits bool)) {
	g := teststack.MultiPrimaryGroup(t)
	for _, level := range []string{"EVENTUAL", "BEFORE"} {
		t.Run(level, func(t *testing.T) { f(t, groupMembers(t, g, level), level == "BEFORE") })
	}
}

// groupMembers returns instances on the members of g, which share their locks.
func groupMembers(t *testing.T, g *teststack.MySQLGroup, consistency string) (members []*env) {
	t.Helper()
	primary := g.Primary(t)
	created := testdb.OpenMySQL(t, g.DSNs[primary])
	wantNil(t, created.Migrator().DropTable(&Order{}, &Stock{}, &Ware{}))
	wantNil(t, created.AutoMigrate(&Order{}, &Stock{}, &Ware{}))
	awaitGroup(t, g)
	for i, dsn := range g.DSNs {
		e := &env{t: t, db: testdb.OpenMySQL(t, consistent(dsn, consistency))}
		if i == 0 {
			e.Guard = guardtest.New(t, e.db)
		} else {
			e.Guard = &guardtest.Guard{Guard: members[0].Peer(t, e.db)}
		}
		members = append(members, e)
	}
	return members
}

func consistent(dsn, level string) string {
	return dsn + "&group_replication_consistency=" + url.QueryEscape("'"+level+"'")
}

// awaitGroup returns when all members have what any of them has committed.
func awaitGroup(t *testing.T, g *teststack.MySQLGroup) {
	t.Helper()
	for _, dsn := range g.DSNs {
		db := testdb.OpenMySQL(t, consistent(dsn, "BEFORE"))
		wantNil(t, db.Exec("SELECT 1").Error)
	}
}

// TestGroupHandOver: a repeat on another member, which may be behind, is a repeat, and what
// the previous holder has updated there is no lock failure.
func TestGroupHandOver(t *testing.T) {
	eachConsistency(t, func(_ *testing.T, members []*env, _ bool) { handOvers(members, 50) })
}

// TestGroupOverlap: that a lock has failed is told, on members that are behind, too. Nothing
// is written twice.
func TestGroupOverlap(t *testing.T) {
	eachConsistency(t, func(t *testing.T, members []*env, _ bool) {
		first, second := members[0], members[1]
		first.create(&Stock{ID: 1, Left: 9})
		testwait.Until(t, "it is applied there", func() bool { return second.count(&Stock{}) == 1 })
		steal := first.thief(second)
		inserted := first.Do(bg, "order:a", func(ctx context.Context, tx *gorm.DB) error {
			steal("order:a", guard.Insert(&Order{No: "a"}))
			return guard.Insert(&Order{No: "a", Amount: 1}).Run(ctx, tx)
		}, guard.Protects(&Order{No: "a"}))
		steal = first.thief(second)
		updated := first.Apply(bg, "sku:1", guard.Update(&Stock{ID: 1}, func(s *Stock) error {
			steal("sku:1", guard.Update(&Stock{ID: 1}, take))
			return take(s)
		}))
		t.Logf("insert: %v\nupdate: %v", inserted, updated)
		if inserted == nil {
			t.Error("both holders inserted")
		}
		left := map[bool]int{true: 7, false: 8}[updated == nil] // it may be made again, on top of the other's
		testwait.Until(t, "all is applied here", func() bool { return first.count(&Order{}) == 1 && first.stock(1).Left == left })
		events := make(map[string][]notify.Event)
		for _, ev := range first.Events.All() {
			events[ev.Key] = append(events[ev.Key], ev)
			t.Logf("%s: %s, %s, %s", ev.Key, ev.Verdict, ev.Outcome, ev.Loss)
		}
		if len(events["order:a"]) != 1 || len(events["sku:1"]) != 1 {
			t.Errorf("events are %+v, want one for each key", events)
		}
	})
}

// lags returns a function that has a member of g apply nothing of what others commit, until
// the function that it returns is called.
func lags(t *testing.T, g *teststack.MySQLGroup, member int) (stop func(*testing.T) (catchUp func())) {
	t.Helper()
	db := testdb.OpenMySQL(t, g.DSNs[member])
	other := testdb.OpenMySQL(t, g.DSNs[(member+1)%3])
	wantNil(t, db.Exec("CREATE TABLE blockers (id INT AUTO_INCREMENT PRIMARY KEY)").Error)
	// Several workers would execute what waits behind the first, and hold the rows.
	wantNil(t, db.Exec("SET GLOBAL replica_parallel_workers = 1").Error)
	t.Cleanup(func() { wantNil(t, db.Exec("SET GLOBAL replica_parallel_workers = DEFAULT").Error) })
	wantNil(t, db.Exec("STOP GROUP_REPLICATION").Error)
	g.Start(t, member)
	pool, err := db.DB()
	wantNil(t, err)
	return func(t *testing.T) func() {
		t.Helper()
		c, err := pool.Conn(bg)
		wantNil(t, err)
		_, err = c.ExecContext(bg, "LOCK TABLES blockers READ")
		wantNil(t, err)
		wantNil(t, other.Exec("INSERT INTO blockers VALUES ()").Error)
		testwait.Until(t, "it applies nothing", func() bool {
			var waits bool
			wantNil(t, db.Raw("SELECT COUNT(*) FROM information_schema.processlist WHERE state LIKE 'Waiting for table metadata%'").Row().Scan(&waits))
			return waits
		})
		catchUp := sync.OnceFunc(func() {
			_, err := c.ExecContext(bg, "UNLOCK TABLES")
			wantNil(t, errors.Join(err, c.Close()))
			awaitGroup(t, g)
		})
		t.Cleanup(catchUp)
		return catchUp
	}
}

// groupChange is a change of a row that all may make.
type groupChange struct {
	name string
	make func() guard.Change
	done error // what the second who makes it gets, after the first
}

var groupChanges = []groupChange{
	{"versioned", func() guard.Change { return guard.Update(&Stock{ID: 1}, take) }, nil},
	{"stamped", func() guard.Change { return guard.Update(&Ware{ID: 1}, takeWare) }, nil},
	{"insert", func() guard.Change { return guard.Insert(&Order{No: "a"}) }, guard.ErrDuplicate},
}

// TestGroupRefusesTheLaterCommit: a member that does not have the previous holder's commit
// yet sends its own, which the group refuses: 3101. That is as good as a deadlock: the change
// is made again, and no lock has failed.
func TestGroupRefusesTheLaterCommit(t *testing.T) {
	g := teststack.MultiPrimaryGroup(t)
	stop := lags(t, g, 1)
	for _, c := range groupChanges {
		t.Run(c.name, func(t *testing.T) {
			members := groupMembers(t, g, "EVENTUAL")
			ahead, behind := members[0], members[1]
			ahead.create(&Stock{ID: 1, Left: 9}, &Ware{ID: 1, Left: 9})
			awaitGroup(t, g)
			catchUp := stop(t)
			wantNil(t, ahead.Apply(bg, "key", c.make()))
			wantRefusal(t, 3101, behind.Do(bg, "key", c.make().Run))
			tries := 0
			err := behind.Do(bg, "key", func(ctx context.Context, tx *gorm.DB) error {
				if tries++; tries == 2 {
					catchUp()
				}
				return c.make().Run(ctx, tx)
			}, guard.Retries(2))
			if tries < 2 || !errors.Is(err, c.done) {
				t.Errorf("after %d tries: %v, want %v", tries, err, c.done)
			}
			ahead.wantNoEvent()
		})
	}
}

// TestGroupTellsOfTwoHolders: of two holders who write one row on two members, the
// later one is refused, and its lock's failure is told. Its COMMIT ends with 3101 if the
// other's commit is not applied here, and with 1180 if it is: InnoDB has rolled back then.
// What is made again then either fails, or is made on top of the other's.
func TestGroupTellsOfTwoHolders(t *testing.T) {
	g := teststack.MultiPrimaryGroup(t)
	stop := lags(t, g, 1)
	for _, number := range []uint16{3101, 1180} {
		for _, c := range groupChanges {
			for _, retries := range []int{0, 2} {
				t.Run(fmt.Sprint(c.name, " ", number, " retries ", retries), func(t *testing.T) {
					members := groupMembers(t, g, "EVENTUAL")
					first, second := members[1], members[0]
					first.create(&Stock{ID: 1, Left: 9}, &Ware{ID: 1, Left: 9})
					awaitGroup(t, g)
					catchUp := func() {}
					if number == 3101 {
						catchUp = stop(t)
					}
					tries := 0
					err := first.Do(bg, "key", func(ctx context.Context, tx *gorm.DB) error {
						if tries++; tries == 2 {
							catchUp()
						}
						err := c.make().Run(ctx, tx)
						if tries > 1 {
							return err
						}
						members[0].Forget("key")
						wantNil(t, second.Apply(bg, "key", c.make()))
						if number == 1180 {
							awaitGroup(t, g)
						}
						return err
					}, guard.Retries(retries))
					catchUp()
					if retries == 0 {
						wantRefusal(t, number, err)
					}
					made := 1
					if err == nil {
						made = 2
					}
					awaitGroup(t, g)
					if left := 9 - first.stock(1).Left; c.name == "versioned" && left != made {
						t.Errorf("%d were taken, want %d", left, made)
					}
					if n := first.count(&Order{}); c.name == "insert" && (n != 1 || err == nil) {
						t.Errorf("%d rows and %v, want one row and an error", n, err)
					}
					if all := members[0].Events.All(); len(all) != 1 {
						t.Errorf("after %v events are %+v, want one", err, all)
					}
				})
			}
		}
	}
}

// TestGroupUndoesNoHalf: a commit of another member undoes what an operation has written so
// far. MySQL forgets that at a savepoint, and would commit what the operation writes then.
func TestGroupUndoesNoHalf(t *testing.T) {
	g := teststack.MultiPrimaryGroup(t)
	members := groupMembers(t, g, "BEFORE")
	first, second := members[0], members[1]
	first.create(&Stock{ID: 1, Left: 9})
	tries := 0
	op := func(ctx context.Context, tx *gorm.DB) error {
		if err := guard.Update(&Stock{ID: 1}, take).Run(ctx, tx); err != nil {
			return err
		}
		if tries++; tries == 1 {
			members[0].Forget("key")
			wantNil(t, second.Apply(bg, "key", guard.Update(&Stock{ID: 1}, take)))
			awaitGroup(t, g)
		}
		return first.Do(ctx, "key", func(_ context.Context, tx *gorm.DB) error { return tx.Create(&Order{No: "a"}).Error })
	}
	if err := first.Do(bg, "key", op); err == nil || errors.Is(err, guard.ErrUnknown) {
		t.Errorf("error is %v, want that all was undone", err)
	}
	if n, left := first.count(&Order{}), first.stock(1).Left; n != 0 || left != 8 {
		t.Errorf("%d orders and %d left, want none and the other's 8", n, left)
	}
	tries = 0
	err := first.Do(bg, "key", op, guard.Retries(1))
	made := map[bool]int64{true: 1}[err == nil]
	if n, left := first.count(&Order{}), first.stock(1).Left; n != made || int64(left) != 7-made {
		t.Errorf("after %v and %d tries there are %d orders and %d left", err, tries, n, left)
	}
	if all := members[0].Events.All(); len(all) != 2 {
		t.Errorf("events are %+v, want two", all)
	}
}

// wantRefusal wants the error of a COMMIT that was refused with such a number.
// wantRefusal: the group has refused a COMMIT with a number. A session that is looked at before that may already
// have lost the savepoint of a transaction that InnoDB has rolled back: 1030 in place of 1180.
func wantRefusal(t *testing.T, number uint16, err error) {
	t.Helper()
	e, ok := errors.AsType[*mysql.MySQLError](err)
	refused := ok && (e.Number == number || number == 1180 && e.Number == 1030)
	if !refused || errors.Is(err, guard.ErrUnknown) {
		t.Errorf("error is %v, want a COMMIT that was refused with %d", err, number)
	}
}

// TestCheckOfGroup: a member that is behind is worth a warning.
func TestCheckOfGroup(t *testing.T) {
	eachConsistency(t, func(t *testing.T, members []*env, waits bool) {
		heard := &warned{Interface: logger.Discard}
		wantNil(t, dbguard.Check(bg, members[0].db.Session(&gorm.Session{Logger: heard}), &Stock{}))
		if heard.of("group_replication_consistency") == waits {
			t.Errorf("members wait: %t, warned of %q", waits, heard.text)
		}
	})
}
