package belay_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"github.com/belaygo/belay"
	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/once"
)

// Ticket and Seat are as they should be.
type Ticket struct {
	ID uint
	No string `gorm:"type:varbinary(64);not null;uniqueIndex"`
}

// Badge is a Ticket on SQLite.
type Badge struct {
	ID uint
	No string `gorm:"size:64;not null;uniqueIndex"`
}

type Seat struct {
	ID      uint
	Version dbguard.Version
}

// Booking and Voucher each have one mistake, and so has the table of Stall.
type Booking struct {
	ID uint
	No string `gorm:"size:64"`
}

type Stall struct {
	ID      uint
	Version dbguard.Version
}

type Voucher struct {
	ID   uint
	Code string `gorm:"type:varchar(64) COLLATE utf8mb4_general_ci;not null;uniqueIndex"`
}

// TestDoctorOfASoundStack: there is no false alarm.
func TestDoctorOfASoundStack(t *testing.T) {
	cfg, _ := onStack(t)
	cfg.DB = openTables(t, teststack.MySQL(t)+"&timeout=5s&readTimeout=30s&writeTimeout=30s&innodb_lock_wait_timeout=20", &Ticket{}, &Seat{})
	setPool(t, cfg.DB, 8)
	cfg.Once = new(once.PurgerConfig)
	cfg.Guard.OnUnavailable = guard.DBOnly
	posts := cfg
	posts.AMQP, posts.Monitor, posts.MonitorToken = "", newMonitor(t, httptest.NewServer, "shop").URL, monitorToken
	for name, cfg := range map[string]belay.Config{"RabbitMQ": cfg, "guard-monitor": posts} {
		if found := open(t, cfg).Doctor(t.Context(), &Ticket{}, &Seat{}); found != nil {
			t.Errorf("with %s: found %v", name, found)
		}
	}
}

// Sale and Item are the models of the README.
type Sale struct {
	ID    uint
	No    string `gorm:"type:varbinary(64);not null;uniqueIndex"`
	Item  int64
	Buyer string
}

type Item struct {
	ID      int64
	Left    int
	Version dbguard.Version
}

// TestDoctorOfTheReadme: who copies the models and the parameters of the DSN from the README
// is told nothing about them, on tables that AutoMigrate has made.
func TestDoctorOfTheReadme(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	testdb.WantNil(t, err)
	for _, model := range []any{Sale{}, Item{}} {
		for f := range reflect.TypeOf(model).Fields() {
			line := regexp.MustCompile(`(?m)^\t` + f.Name + ` +\S*` + f.Type.Name() + `( ` + regexp.QuoteMeta("`"+string(f.Tag)+"`") + `)?( +//.*)?$`)
			if found := line.FindSubmatch(readme); found == nil || (f.Tag == "") != (len(found[1]) == 0) {
				t.Errorf("the README has no field %s %s `%s`", f.Name, f.Type, f.Tag)
			}
		}
	}
	params := regexp.MustCompile(`(?m)^user:password@tcp\(.*\)/shop\?(.*)$`).FindSubmatch(readme)
	if params == nil {
		t.Fatal("the README has no DSN")
	}
	dsn := teststack.MySQL(t)
	db := openTables(t, dsn[:strings.IndexByte(dsn, '?')+1]+string(params[1]), &Sale{}, &Item{})
	setPool(t, db, 8)
	b := open(t, belay.Config{
		Service: "shop", DB: db, Engine: memlock.New(),
		Monitor: newMonitor(t, httptest.NewServer, "shop").URL, MonitorToken: monitorToken,
	})
	if found := b.Doctor(t.Context(), &Sale{}, &Item{}); found != nil {
		t.Errorf("found %v", found)
	}
}

const monitorToken = "a-token-of-this-test"

// newMonitor answers as guard-monitor does to a check with the token for a service.
func newMonitor(t *testing.T, start func(http.Handler) *httptest.Server, service string) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/ingest", func(w http.ResponseWriter, r *http.Request) {
		asked := r.URL.Query().Get("service")
		switch {
		case r.Header.Get("Authorization") != "Bearer "+monitorToken:
			w.WriteHeader(http.StatusUnauthorized)
		case asked != service:
			w.WriteHeader(http.StatusForbidden)
		}
		fmt.Fprintf(w, `{"service":%q}`, asked)
	})
	s := start(mux)
	t.Cleanup(s.Close)
	return s
}

// TestDoctorOfAMonitor: it says whether guard-monitor can be reached and takes the token.
func TestDoctorOfAMonitor(t *testing.T) {
	db := openTables(t, "", &Badge{})
	quietTLS := func(h http.Handler) *httptest.Server {
		s := httptest.NewUnstartedServer(h)
		s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
		s.StartTLS()
		return s
	}
	sound := newMonitor(t, httptest.NewServer, "shop").URL
	for name, c := range map[string]struct {
		address, token string
		want           []string
	}{
		"sound":             {sound, monitorToken, nil},
		"another token":     {sound, "a-secret-of-others", []string{"monitor-token"}},
		"another service":   {newMonitor(t, httptest.NewServer, "orders").URL, monitorToken, []string{"monitor-token"}},
		"another server":    {sound + "/elsewhere", monitorToken, []string{"monitor-server"}},
		"nobody":            {"http://127.0.0.1:1", monitorToken, []string{"monitor-server"}},
		"another authority": {newMonitor(t, quietTLS, "shop").URL, monitorToken, []string{"monitor-server"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, belay.Config{Service: "shop", DB: db, Engine: memlock.New(), Monitor: c.address, MonitorToken: c.token})
			wantChecks(t, b.Doctor(t.Context(), &Badge{}), c.want...)
		})
	}
}

// TestDoctorOfAFamily: it reports the server that Config.Family names, and what that leaves unproven.
// Open lists the names that there are.
func TestDoctorOfAFamily(t *testing.T) {
	db := openTables(t, teststack.MySQL(t)+"&timeout=5s&readTimeout=30s&writeTimeout=30s&innodb_lock_wait_timeout=20", &Ticket{})
	setPool(t, db, 8)
	cfg := belay.Config{Service: "shop", DB: db, Engine: memlock.New()}
	for family, want := range map[guard.Family]string{
		"tidb":    "it is TiDB, told by Config.Family: a row that is missing or old proves no outcome",
		"sharded": "it is a proxy of shards, told by Config.Family: nothing proves the outcome",
	} {
		cfg.Family = family
		found := open(t, cfg).Doctor(t.Context(), &Ticket{})
		wantChecks(t, found, "db-family")
		if len(found) == 1 && !strings.Contains(found[0].String(), want) {
			t.Errorf("%s: %v, want %s", family, found[0], want)
		}
	}
	cfg.Family = "CockroachDB"
	b, err := belay.Open(t.Context(), cfg)
	if err == nil || !strings.Contains(err.Error(), `"CockroachDB" is no server that resembles the database "mysql": want one of Dolt, Doris,`) {
		t.Errorf("opened as %v: %v", b, err)
	}
}

// TestDoctorFindsTwelve: a stack with twelve mistakes, all of which one call finds.
func TestDoctorFindsTwelve(t *testing.T) {
	cluster := teststack.StartCluster(t, "twelve")
	broker := teststack.AMQP(t)
	consume(t, broker)
	mistakes := map[string]string{
		"db-isolation":   "READ-COMMITTED",
		"db-clock":       "behind this host's",
		"db-timeouts":    "timeout=5s",
		"db-pool":        "no limit",
		"db-model":       "model Booking",
		"db-version":     "model Stall",
		"db-collation":   "model Voucher",
		"redis-eviction": "allkeys-lru",
		"redis-rights":   "+zadd",
		"redis-coverage": "16383 of 16384 slots",
		"redis-replicas": "has no replica",
		"events-rights":  "belay.events",
	}
	dsn := teststack.MySQL(t)
	var level, value string // its name differs
	testdb.WantNil(t, testdb.OpenMySQL(t, dsn).Raw("SHOW VARIABLES WHERE Variable_name IN ('tx_isolation', 'transaction_isolation')").Row().Scan(&level, &value))
	cfg := belay.Config{
		Service: "shop",
		DB:      openTables(t, dsn+"&timestamp=1000000000&"+level+"=%27READ-COMMITTED%27", &Booking{}, &Stall{}, &Voucher{}),
		Redis:   "redis+cluster://" + strings.Join(cluster.Addrs, ","),
		AMQP:    teststack.AMQPUser(t, broker, `^belay\.monitor$`),
	}
	testdb.WantNil(t, cfg.DB.Exec("ALTER TABLE stalls MODIFY version INT NOT NULL DEFAULT 1").Error)
	spoil(t, cluster)

	found := open(t, cfg).Doctor(t.Context(), &Booking{}, &Stall{}, &Voucher{})
	for _, f := range found {
		t.Log(f)
		if _, made := mistakes[f.Check]; !made {
			t.Errorf("found %v, which nobody made", f)
		}
	}
	for _, check := range slices.Sorted(maps.Keys(mistakes)) {
		if !slices.ContainsFunc(found, func(f belay.Finding) bool { return f.Check == check && strings.Contains(f.String(), mistakes[check]) }) {
			t.Errorf("%s, which says %q, is not found", check, mistakes[check])
		}
	}
}

// spoil makes four mistakes in a cluster: a policy, a right, a slot, and a replica.
func spoil(t *testing.T, c *teststack.Cluster) {
	t.Helper()
	must := func(addr string, args ...any) any {
		t.Helper()
		client := redis.NewClient(&redis.Options{Addr: addr})
		defer client.Close()
		answer, err := client.Do(t.Context(), args...).Result()
		testdb.WantNil(t, err)
		return answer
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs})
	defer client.Close()
	var shards []redis.ClusterShard
	testwait.Until(t, "each master has its replica", func() bool {
		shards, _ = client.ClusterShards(t.Context()).Result()
		return len(shards) == 3 && !slices.ContainsFunc(shards, func(s redis.ClusterShard) bool { return len(s.Nodes) < 2 })
	})
	node := func(shard redis.ClusterShard, role string) string {
		i := slices.IndexFunc(shard.Nodes, func(n redis.Node) bool { return n.Role == role })
		return net.JoinHostPort(shard.Nodes[i].IP, strconv.FormatInt(shard.Nodes[i].Port, 10))
	}
	must(node(shards[0], "master"), "config", "set", "maxmemory-policy", "allkeys-lru")
	must(node(shards[1], "master"), "acl", "setuser", "default", "-zadd")
	for _, addr := range c.Addrs {
		must(addr, "cluster", "delslots", shards[2].Slots[0].End)
	}
	gone := node(shards[2], "replica")
	c.Stack(t, "kill", c.Node(t, gone))
	testwait.Until(t, "all know that the replica is dead", func() bool {
		return !slices.ContainsFunc(c.Addrs, func(addr string) bool {
			return addr != gone && !strings.Contains(must(addr, "cluster", "nodes").(string), "slave,fail ")
		})
	})
}

// TestDoctorOfSettings: mistakes of the program itself, and parts that it looks at no more
// closely than they allow.
func TestDoctorOfSettings(t *testing.T) {
	db := openTables(t, "", &Booking{})
	b := open(t, belay.Config{
		Service: "shop", DB: db, Engine: memlock.New(), Once: new(once.PurgerConfig), Calls: true,
		Lock: lock.Config{TTL: time.Second}, Guard: guard.Config{OnUnavailable: guard.DBOnly},
	})
	found := b.Doctor(t.Context(), &Booking{})
	wantChecks(t, found, "lock-ttl", "db-model", "guard-db-only")
	for i, condition := range []string{"one request only", "the request's key is the only one"} { // there are requests
		if f := found[1+i]; f.Severity != belay.SeverityNote || !strings.Contains(f.Problem, condition) {
			t.Errorf("found %v, want a note with %q", f, condition)
		}
	}
	testdb.WantNil(t, b.Guard.SetPolicy(guard.FailClosed))
	wantChecks(t, b.Doctor(t.Context(), &Booking{}), "lock-ttl", "db-model")
	wantChecks(t, b.Doctor(t.Context()), "lock-ttl", "db-model") // unchecked
	testdb.WantNil(t, db.Exec("ALTER TABLE belay_pending RENAME TO calls").Error)
	wantChecks(t, b.Doctor(t.Context()), "db-calls", "lock-ttl", "db-model")
	testdb.WantNil(t, db.Exec("ALTER TABLE calls RENAME TO belay_pending").Error)
	testdb.WantNil(t, db.Exec("ALTER TABLE belay_answer RENAME TO before").Error)
	wantChecks(t, b.Doctor(t.Context()), "db-requests", "lock-ttl", "db-model")
	testdb.WantNil(t, db.Exec("CREATE TABLE belay_answer AS SELECT * FROM before").Error) // without the key
	found = b.Doctor(t.Context())
	wantChecks(t, found, "db-requests", "lock-ttl", "db-model")
	if !strings.Contains(found[0].Problem, "no unique index on (request) alone") {
		t.Errorf("found %v", found[0])
	}
}

// TestDoctorWithoutServers: it says which servers it can't reach, also when its context has
// ended.
func TestDoctorWithoutServers(t *testing.T) {
	b := open(t, belay.Config{Service: "shop", DB: openTables(t, "", &Badge{}), Redis: "redis://127.0.0.1:1", AMQP: "amqp://shop:secret@127.0.0.1:1"})
	wantChecks(t, b.Doctor(t.Context(), &Badge{}), "events-broker", "redis-server")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantChecks(t, b.Doctor(ctx, &Badge{}), "db-server", "events-broker", "events-outbox", "redis-server")
}

func wantChecks(t *testing.T, found []belay.Finding, want ...string) {
	t.Helper()
	var checks []string
	for _, f := range found {
		checks = append(checks, f.Check)
		if f.Fix == "" || f.Subject == "" || strings.Contains(f.String(), "secret") {
			t.Errorf("found %v", f)
		}
	}
	if !slices.Equal(checks, want) {
		t.Errorf("found %v, want %v", found, want)
	}
}

// openTables opens a database, SQLite if dsn is "", with the tables of models.
func openTables(t *testing.T, dsn string, models ...any) (db *gorm.DB) {
	t.Helper()
	if dsn == "" {
		db = testdb.OpenSQLite(t, t.TempDir()+"/shop.db")
	} else {
		db = testdb.OpenMySQL(t, dsn)
	}
	testdb.WantNil(t, db.AutoMigrate(models...))
	return db
}

func setPool(t *testing.T, db *gorm.DB, most int) {
	t.Helper()
	pool, err := db.DB()
	testdb.WantNil(t, err)
	pool.SetMaxOpenConns(most)
	pool.SetMaxIdleConns(most)
}
