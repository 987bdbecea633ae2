package main

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"

	_ "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/go-redis/v9"
	_ "modernc.org/sqlite"

	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/quorumlock"
	"github.com/belaygo/belay/lock/redislock"
	"github.com/belaygo/belay/lock/sqllock"
)

// An engine is a lock engine with its servers, or a peer's lock on the same.
type engine struct {
	name, settings string
	needs          string // the variable that names its servers
	open           func(ctx context.Context) (*opened, error)
}

// An opened engine is at work.
type opened struct {
	cycle    func(ctx context.Context, key, owner string) error // acquires and releases
	requests func(ctx context.Context) (int64, error)           // sent until now; nil if they can't be counted
	pidFiles []string                                           // of the servers whose fsyncs count
	closers  []func()
}

func (o *opened) close() {
	for _, closer := range slices.Backward(o.closers) {
		closer()
	}
}

// of has the cycles be those of a lock engine.
func (o *opened) of(e lockengine.Engine) *opened {
	o.closers = append(o.closers, func() { _ = e.Close(context.Background()) })
	o.cycle = func(ctx context.Context, key, owner string) error {
		r := lockengine.Request{Key: key, Owner: owner}
		if _, err := e.Acquire(ctx, r, ttl); err != nil {
			return err
		}
		return e.Release(ctx, r)
	}
	return o
}

// counting has the requests be those that Redis servers have got; plain are the commands
// that count beside scripts.
func (o *opened) counting(addrs []string, plain ...string) *opened {
	m := newMeter(addrs)
	o.requests = func(ctx context.Context) (int64, error) { return m.total(ctx, plain) }
	o.closers = append(o.closers, m.close)
	return o
}

// engines returns all of them. The first is what the others are compared with.
func engines(addrs []string, five *five, pids string) []engine {
	files := func(nodes ...string) (files []string) {
		if pids == "" {
			return nil
		}
		for _, node := range nodes {
			files = append(files, filepath.Join(pids, node+".pid"))
		}
		return files
	}
	return []engine{
		{"redis cluster", "lock/redislock, three masters with a replica each, which save nothing", "BELAY_REDIS_ADDRS", func(context.Context) (*opened, error) {
			e, err := redislock.Open(&redis.UniversalOptions{Addrs: addrs, IsClusterMode: true}, redislock.Config{})
			if err != nil {
				return nil, err
			}
			return (&opened{pidFiles: files("redis-1", "redis-2", "redis-3")}).of(e).counting(addrs), nil
		}},
		{"redis server", "lock/redislock on one that saves nothing", "", func(context.Context) (*opened, error) {
			e, err := openServer(five.addrs[0])
			if err != nil {
				return nil, err
			}
			return (&opened{pidFiles: five.pidFiles[:1]}).of(e).counting(five.addrs[:1]), nil
		}},
		{"quorum of five", "lock/quorumlock on five of these", "", five.quorum},
		{"redsync of five", "redsync on the same five", "", five.redsync},
		{"mariadb", "lock/sqllock, 4 connections, every commit durable", "BELAY_MYSQL_DSN", func(ctx context.Context) (*opened, error) {
			return openMariaDB(ctx, files("mariadb"))
		}},
		{"postgres", "lock/sqllock, 4 connections, every commit durable", "BELAY_POSTGRES_DSN", func(ctx context.Context) (*opened, error) {
			return openPostgres(ctx, files("postgres"))
		}},
		{"etcd", "lock/etcdlock on three members", "BELAY_ETCD_ENDPOINTS", func(context.Context) (*opened, error) {
			return openEtcd(files("etcd-1", "etcd-2", "etcd-3"))
		}},
		{"etcd mutex", "concurrency.Mutex of etcd's client on the same, one session for all callers", "BELAY_ETCD_ENDPOINTS", func(context.Context) (*opened, error) {
			return openEtcdMutex(files("etcd-1", "etcd-2", "etcd-3"))
		}},
		{"zookeeper", "lock/zklock on three servers, fsync before each answer", "BELAY_ZOOKEEPER", func(context.Context) (*opened, error) {
			return openZooKeeper(files("zookeeper-1", "zookeeper-2", "zookeeper-3"))
		}},
		{"zookeeper recipe", "zk.Lock of go-zookeeper on the same, one session for all callers", "BELAY_ZOOKEEPER", func(context.Context) (*opened, error) {
			return openZooKeeperRecipe(files("zookeeper-1", "zookeeper-2", "zookeeper-3"))
		}},
		{"sqlite", "lock/sqllock, a file with a write-ahead log, synchronous=FULL, this process alone", "", openSQLite},
	}
}

func openServer(addr string) (redislock.Engine, error) {
	return redislock.Open(&redis.UniversalOptions{Addrs: []string{addr}}, redislock.Config{AskStart: true})
}

func (f *five) quorum(context.Context) (*opened, error) {
	o := &opened{pidFiles: f.pidFiles}
	var nodes []lockengine.Engine
	for _, addr := range f.addrs {
		e, err := openServer(addr)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, e)
		o.closers = append(o.closers, func() { _ = e.Close(context.Background()) })
	}
	e, err := quorumlock.New(nodes, quorumlock.Config{Durable: true}) // the servers have just been started
	if err != nil {
		return nil, err
	}
	return o.of(e).counting(f.addrs), nil
}

// connections is how many an engine in a database has.
const connections = 4

func openTable(ctx context.Context, pool *sql.DB, d sqllock.Dialect) (*opened, error) {
	pool.SetMaxOpenConns(connections)
	pool.SetMaxIdleConns(connections)
	o := &opened{closers: []func(){func() { _ = pool.Close() }}}
	if err := sqllock.Migrate(ctx, pool, d); err != nil {
		o.close()
		return nil, err
	}
	e, err := sqllock.New(pool, d, sqllock.Config{})
	if err != nil {
		o.close()
		return nil, err
	}
	return o.of(e), nil
}

func openMariaDB(ctx context.Context, pidFiles []string) (*opened, error) {
	dsn := os.Getenv("BELAY_MYSQL_DSN")
	pool, err := sql.Open("mysql", dsn+"&timeout=5s&readTimeout=30s&writeTimeout=30s&tx_isolation=%27READ-COMMITTED%27")
	if err != nil {
		return nil, err
	}
	o, err := openTable(ctx, pool, sqllock.MySQL)
	if err != nil {
		return nil, err
	}
	o.pidFiles = pidFiles
	o.requests = func(ctx context.Context) (n int64, err error) {
		var name string
		err = pool.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Questions'").Scan(&name, &n)
		return n, err
	}
	return o, nil
}

// A queryCounter counts statements.
type queryCounter struct{ n atomic.Int64 }

func (c *queryCounter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.n.Add(1)
	return ctx
}

func (c *queryCounter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func openPostgres(ctx context.Context, pidFiles []string) (*opened, error) {
	cfg, err := pgx.ParseConfig(os.Getenv("BELAY_POSTGRES_DSN"))
	if err != nil {
		return nil, err
	}
	var queries queryCounter
	cfg.Tracer = &queries
	o, err := openTable(ctx, stdlib.OpenDB(*cfg), sqllock.Postgres)
	if err != nil {
		return nil, err
	}
	o.pidFiles = pidFiles
	o.requests = func(context.Context) (int64, error) { return queries.n.Load(), nil }
	return o, nil
}

func openSQLite(ctx context.Context) (*opened, error) {
	dir, err := os.MkdirTemp("", "belay-bench-")
	if err != nil {
		return nil, err
	}
	pool, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "locks.db")+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(30000)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	o, err := openTable(ctx, pool, sqllock.SQLite)
	if err != nil {
		return nil, err
	}
	o.closers = append([]func(){func() { _ = os.RemoveAll(dir) }}, o.closers...)
	o.pidFiles = []string{filepath.Join(dir, "pid")} // this process is the server
	return o, os.WriteFile(o.pidFiles[0], []byte(strconv.Itoa(os.Getpid())), 0o600)
}
