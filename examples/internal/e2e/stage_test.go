package e2e_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"gorm.io/gorm"

	"github.com/belaygo/belay/examples/twoservices"
	"github.com/belaygo/belay/internal/testamqp"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/testproc"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
)

// queue is where the warehouse reads.
const queue = "sale.made"

// heartbeat is how often a connection to the broker must show that it lives.
const heartbeat = 2 * time.Second

// servers are the servers of a run. The first three are nil unless they are its own.
type servers struct {
	mariadb, postgres *teststack.Database
	rabbitmq          *teststack.Broker

	shop, warehouse, amqp string // where they are
}

// sharedServers are those of all tests, which nobody kills.
func sharedServers(t *testing.T) servers {
	t.Helper()
	return servers{shop: teststack.MySQL(t), warehouse: teststack.Postgres(t), amqp: teststack.AMQP(t)}
}

// ownServers are the run's own.
func ownServers(t *testing.T) servers {
	t.Helper()
	s := servers{
		mariadb:  teststack.StartDatabase(t, "e2e-shop", "mariadb"),
		postgres: teststack.StartDatabase(t, "e2e-warehouse", "postgres"),
		rabbitmq: teststack.StartBroker(t, "e2e-broker"),
	}
	s.shop, s.warehouse, s.amqp = s.mariadb.DSN, s.postgres.DSN, s.rabbitmq.AMQP(t)
	return s
}

// A stage has both services, and what stands between them and their servers.
type stage struct {
	t *testing.T
	servers

	rng               *rand.Rand
	items, firstItem  int64
	shopDB            *gorm.DB // the test's own ways
	warehouseDB       *gorm.DB
	toShop            *testamqp.Proxy // before the shop's database
	toWarehouse       *testamqp.Proxy
	toBroker          [2]*testamqp.Proxy // of the shop and of the warehouse
	redis             string
	shops, warehouses []*instance
	paused            []*instance // shops

	answered, refused atomic.Int64 // requests of customers
	customers         sync.WaitGroup
	open              chan int // sales that wait for a customer
	admitted          int
	sold              chan struct{} // closed when all sales are answered
}

// An instance is a process of a service, and those that came before it.
type instance struct {
	*testproc.Process

	role, dsn, amqp string
	owner           string // of its relay
	addr            atomic.Pointer[string]
}

// newStage sets up the tables and the queue. declare is twoservices.Declare, unless it is wrong.
func newStage(t *testing.T, on servers, seed uint64, items int64, declare func(*amqp.Channel) error) *stage {
	t.Helper()
	s := &stage{
		t: t, servers: on, rng: rand.New(rand.NewPCG(seed, 0)), items: items, firstItem: rand.Int64N(1 << 40),
		redis: strings.Join(teststack.Redis(t), ","),
	}
	s.shopDB, s.warehouseDB = testdb.OpenMySQL(t, on.shop), testdb.OpenPostgres(t, on.warehouse)
	testdb.WantNil(t, s.shopDB.AutoMigrate(&twoservices.Item{}, &twoservices.Sale{}))
	testdb.WantNil(t, s.warehouseDB.AutoMigrate(&twoservices.Shelf{}, &twoservices.Shipment{}))
	for n := range s.items {
		testdb.WantNil(t, s.shopDB.Create(&twoservices.Item{ID: s.firstItem + n}).Error)
		testdb.WantNil(t, s.warehouseDB.Create(&twoservices.Shelf{ID: s.firstItem + n}).Error)
	}
	testdb.WantNil(t, s.warehouseDB.Create(&twoservices.Shelf{ID: s.mark()}).Error)
	testamqp.OnChannel(t, on.amqp, func(ch *amqp.Channel) { testdb.WantNil(t, declare(ch)) })
	if on.rabbitmq != nil {
		on.rabbitmq.Sync(t)
	}
	s.toShop, _ = testamqp.NewProxy(t, "tcp://"+testdb.AddrOf(t, on.shop))
	s.toWarehouse, _ = testamqp.NewProxy(t, "tcp://"+testdb.AddrOf(t, on.warehouse))
	for n := range s.toBroker {
		s.toBroker[n], _ = testamqp.NewProxy(t, on.amqp)
	}
	return s
}

// begin starts instances of both services.
func (s *stage) begin(shop, warehouse string, shops, warehouses int) {
	s.t.Helper()
	for range shops {
		i := &instance{role: shop, dsn: testdb.By(s.t, s.shop, s.toShop.Addr), amqp: s.brokerBy(0)}
		s.start(i)
		s.shops = append(s.shops, i)
	}
	for _, i := range s.shops {
		s.until("each shop has lanes", func() bool { return s.lanes(i) > 0 })
	}
	for range warehouses {
		i := &instance{role: warehouse, dsn: testdb.By(s.t, s.warehouse, s.toWarehouse.Addr), amqp: s.brokerBy(1)}
		s.start(i)
		s.warehouses = append(s.warehouses, i)
	}
}

// brokerBy is the broker's URL through a proxy. The broker notices a paused process soon.
func (s *stage) brokerBy(proxy int) string {
	u, err := url.Parse(s.amqp)
	if err != nil {
		s.t.Fatal("the broker's URL is none")
	}
	u.Host, u.RawQuery = s.toBroker[proxy].Addr, fmt.Sprintf("heartbeat=%d", heartbeat/time.Second)
	return u.String()
}

// start starts a process in the place of one that has ended.
func (s *stage) start(i *instance) {
	s.t.Helper()
	known := s.relays()
	i.Process = testproc.Start(s.t, i.role, testproc.Self(childRole+"="+i.role, childDSN+"="+i.dsn, childAMQP+"="+i.amqp, childRedis+"="+s.redis))
	line := i.Await("that it serves", func(line string) bool { return strings.HasPrefix(line, "serves") })
	addr := strings.TrimPrefix(line, "serves ")
	i.addr.Store(&addr)
	if i.role == roleWarehouse || i.role == roleNoInbox {
		return
	}
	s.until("its relay is known", func() bool {
		for owner := range s.relays() {
			if !known[owner] {
				i.owner = owner
				return true
			}
		}
		return false
	})
}

// relays returns the owners of lanes that there were.
func (s *stage) relays() map[string]bool {
	var list []string
	_ = s.shopDB.Raw("SELECT owner FROM belay_relay").Scan(&list).Error // none before the first
	owners := make(map[string]bool, len(list))
	for _, owner := range list {
		owners[owner] = true
	}
	return owners
}

// until waits for a condition. Meanwhile a shop that is paused may go on.
func (s *stage) until(what string, cond func() bool) {
	s.t.Helper()
	testwait.Until(s.t, what, func() bool { s.resume(); return cond() })
}

// drain waits for a condition for as long as sales are shipped.
func (s *stage) drain(what string, cond func() bool) {
	s.t.Helper()
	for done := false; !done; {
		before := s.shipped()
		s.until(what, func() bool { done = cond(); return done || s.shipped() > before+20 })
	}
}

// count counts rows, and is -1 while the database is away.
func count(db *gorm.DB, query string, args ...any) int {
	var n int
	if db.Raw("SELECT COUNT(*) FROM "+query, args...).Scan(&n).Error != nil {
		return -1
	}
	return n
}

func (s *stage) shipped() int { return count(s.warehouseDB, "shipments") }

// settle heals all, waits until every message has arrived, and ends the services.
func (s *stage) settle() {
	s.t.Helper()
	s.until("others have the lanes of the shop that is paused", func() bool { return len(s.paused) == 0 })
	s.drain("no message is in the shop", func() bool { return count(s.shopDB, "belay_message") == 0 })
	s.arrived()
	for _, i := range s.warehouses {
		s.end(i)
	}
	for testamqp.Depth(s.t, s.amqp, queue) > 0 { // they had given some back
		s.start(s.warehouses[0])
		s.arrived()
		s.end(s.warehouses[0])
	}
	for _, i := range s.shops {
		s.end(i)
	}
}

// arrived waits until a mark that is put into the queue has been shipped, and takes it away again.
func (s *stage) arrived() {
	s.t.Helper()
	mark := fmt.Sprintf("mark-%d", rand.Int64())
	body, err := json.Marshal(twoservices.Sale{No: mark, Item: s.mark()})
	testdb.WantNil(s.t, err)
	testamqp.OnChannel(s.t, s.amqp, func(ch *amqp.Channel) {
		testdb.WantNil(s.t, ch.Confirm(false))
		confirm, err := ch.PublishWithDeferredConfirm("", queue, true, false, amqp.Publishing{MessageId: mark, Body: body, DeliveryMode: amqp.Persistent})
		testdb.WantNil(s.t, err)
		confirm.Wait()
	})
	s.drain("the queue has arrived", func() bool { return count(s.warehouseDB, "shipments WHERE no = ?", mark) > 0 })
	testdb.WantNil(s.t, s.warehouseDB.Delete(&twoservices.Shipment{}, "no = ?", mark).Error)
}

// mark is the item of marks.
func (s *stage) mark() int64 { return s.firstItem + s.items }

// end ends a process by SIGTERM.
func (s *stage) end(i *instance) {
	s.t.Helper()
	i.Signal(syscall.SIGTERM)
	s.until(i.role+" ends on SIGTERM", i.HasExited)
	if err := i.Err(); err != nil {
		s.t.Logf("%s ended with %v", i.role, err)
	}
}

// pick returns an instance that is not paused.
func (s *stage) pick(list []*instance) *instance {
	for {
		i := list[s.rng.IntN(len(list))]
		if len(s.paused) == 0 || s.paused[0] != i {
			return i
		}
	}
}
