package payments_test

import (
	"errors"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/testamqp"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/testproc"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/once"
)

const (
	items   = 20
	inStock = 1 << 20 // of each item
)

// A stage has the services, the provider, and what stands between them and their servers.
type stage struct {
	t    *testing.T
	rng  *rand.Rand
	role string
	dsn  string

	own       *teststack.Database // nil unless the database is the run's own
	db        *gorm.DB            // the test's own way
	toDB      *testamqp.Proxy
	redis     []string
	services  []*instance
	provider  *testproc.Process
	ledger    string // a file
	front     string // where the provider is, through its deaths
	providing atomic.Pointer[url.URL]

	payments  []*payment
	customers sync.WaitGroup
	open      chan *payment // that wait for a customer
	admitted  int
	ended     chan struct{} // closed when no customer waits any more
	refused   atomic.Int64  // requests
	left      atomic.Int64  // payments that customers wait for
	undecided atomic.Int64
}

// An instance is a process of a service, and those that came before it.
type instance struct {
	*testproc.Process
	addr atomic.Pointer[string]
}

// newStage sets up the tables and starts the provider. own is the database, if it is the run's.
func newStage(t *testing.T, dsn string, own *teststack.Database, seed uint64, role string) *stage {
	t.Helper()
	s := &stage{
		t: t, rng: rand.New(rand.NewPCG(seed, 0)), role: role, own: own, redis: teststack.Redis(t),
		ledger: filepath.Join(t.TempDir(), "ledger"),
	}
	if testdb.IsPostgres(dsn) {
		s.db = testdb.OpenPostgres(t, dsn)
	} else {
		s.db = testdb.OpenMySQL(t, dsn)
	}
	testdb.WantNil(t, errors.Join(s.db.AutoMigrate(&Item{}, &Payment{}), once.Migrate(t.Context(), s.db), once.MigrateCalls(t.Context(), s.db)))
	for n := range int64(items) {
		testdb.WantNil(t, s.db.Create(&Item{ID: n + 1, Stock: inStock}).Error)
	}
	s.toDB, _ = testamqp.NewProxy(t, "tcp://"+testdb.AddrOf(t, dsn))
	s.dsn = testdb.By(t, dsn, s.toDB.Addr)
	s.startProvider()
	front := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(s.providing.Load()) },
		Transport: &http.Transport{DisableKeepAlives: true},
		ErrorLog:  log.New(io.Discard, "", 0),
	})
	t.Cleanup(front.Close)
	s.front = strings.TrimPrefix(front.URL, "http://")
	return s
}

// begin starts the services.
func (s *stage) begin(services int) {
	s.t.Helper()
	for range services {
		i := new(instance)
		s.start(i)
		s.services = append(s.services, i)
	}
}

// startProvider starts the provider, with the ledger of the one before it.
func (s *stage) startProvider() {
	s.t.Helper()
	s.provider = testproc.Start(s.t, roleProvider, testproc.Self(childRole+"="+roleProvider, childLedger+"="+s.ledger))
	s.providing.Store(&url.URL{Scheme: "http", Host: serving(s.provider)})
}

// start starts a process in the place of one that has ended.
func (s *stage) start(i *instance) {
	s.t.Helper()
	i.Process = testproc.Start(s.t, s.role, testproc.Self(childRole+"="+s.role, childDSN+"="+s.dsn,
		childRedis+"="+strings.Join(s.redis, ","), childProvider+"="+s.front))
	addr := serving(i.Process)
	i.addr.Store(&addr)
}

// serving returns the address of a process.
func serving(p *testproc.Process) string {
	const prefix = "serves "
	return strings.TrimPrefix(p.Await("that it serves", func(line string) bool { return strings.HasPrefix(line, prefix) }), prefix)
}

// end ends a service by SIGTERM.
func (s *stage) end(i *instance) {
	s.t.Helper()
	i.Signal(syscall.SIGTERM)
	s.until("the service ends on SIGTERM", i.HasExited)
	if err := i.Err(); err != nil {
		s.t.Logf("the service ended with %v", err)
	}
}

func (s *stage) until(what string, cond func() bool) {
	s.t.Helper()
	testwait.Until(s.t, what, cond)
}

// pick returns one of the services.
func (s *stage) pick() *instance { return s.services[s.rng.IntN(len(s.services))] }

// order orders something of the provider, which lives.
func (s *stage) order(path string, form url.Values) {
	s.t.Helper()
	resp, err := client.PostForm(s.providing.Load().String()+path, form)
	testdb.WantNil(s.t, err)
	testdb.WantNil(s.t, resp.Body.Close())
}

// working returns how many charges the provider is making.
func (s *stage) working() string {
	s.t.Helper()
	resp, err := client.Get(s.providing.Load().String() + "/working")
	testdb.WantNil(s.t, err)
	defer resp.Body.Close()
	n, err := io.ReadAll(resp.Body)
	testdb.WantNil(s.t, err)
	return string(n)
}

// charges returns how many charges the ledger has.
func (s *stage) charges() int {
	s.t.Helper()
	text, err := os.ReadFile(s.ledger)
	testdb.WantNil(s.t, err)
	return strings.Count(string(text), `"Refused":false`)
}

// judge compares the tables with the ledger.
func (s *stage) judge() verdict {
	s.t.Helper()
	entries, err := readLedger(s.ledger)
	testdb.WantNil(s.t, err)
	charges := make(map[string]int)
	for _, e := range entries {
		if !e.Refused {
			charges[e.No]++
		}
	}
	var rows []Payment
	testdb.WantNil(s.t, s.db.Find(&rows).Error)
	states := make(map[string]string)
	for _, p := range rows {
		states[p.No] = p.State
	}
	list, err := once.Open(s.t.Context(), s.db, len(s.payments)+1)
	testdb.WantNil(s.t, err)
	pending := make(map[string]*once.Pending)
	for n := range list {
		pending[list[n].Key] = &list[n]
	}
	var records []record
	for _, p := range s.payments {
		records = append(records, record{states[p.no], charges[p.no], pending[request(p.no, p.cents).Key()]})
	}
	var left int
	testdb.WantNil(s.t, s.db.Model(&Item{}).Select("SUM(stock)").Scan(&left).Error)
	return judge(records, items*inStock-left)
}
