package chaos_test

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

// A bed is a database of several nodes: how they are brought up, which of them takes writes,
// and what is done to them. Workers come to it by a front, as an ordinary user.
type bed struct {
	teststack.BedConfig

	kind     string        // of its nodes, one of databases
	nodes    []string      // their names in scripts/stack, in the order of their DSNs
	dsns     string        // the variable in which scripts/stack env has these
	operator string        // may do everything, if the user of the DSNs may not; it has the same password
	params   string        // of the workers' DSNs
	writes   string        // selects whether a node takes writes now
	spread   bool          // several take writes at a time: each worker has one that it prefers
	users    []string      // make the user of the workers, whose name and password are service; or it is that of the DSNs
	behind   bool          // a node may begin a transaction before it has what others have committed
	pooler   string        // the variable with the DSN by which workers come in place of the front
	self     string        // selects what that of the kind does, if that is of no use here
	kill     string        // ends a session in place of what the kind does
	notices  time.Duration // until nodes put one out that is silent, if that is longer than aWhile
	deck     []faultKind
}

// beds are the beds by their names. Each is defined in a file of its own.
var beds = map[string]bed{
	"galera":    galeraBed,
	"behind":    behindBed,
	"group":     groupBed,
	"multi":     multiBed,
	"pgbouncer": pgbouncerBed,
	"semisync":  semisyncBed,
	"standby":   standbyBed,
}

// A standing is a bed that was brought up.
type standing struct {
	bed

	t     *report
	stack *teststack.Bed
	front *front
	admin []*gorm.DB // of each node, past the front
	dsns  []string   // by which workers come
	past  []string   // of their user at each node, past the front
	user  string     // of the workers

	pooled *sql.DB // by way of the pooler, or nil
}

// start brings the bed up.
func (b bed) start(t *report, name string) *standing {
	s := &standing{bed: b, t: t, stack: teststack.StartBed(t, "chaos-"+name, b.BedConfig), user: "belay"}
	t.Cleanup(s.keepLogs)
	if b.users != nil {
		s.user = serviceUser
	}
	all := s.stack.DSNs(t, b.dsns)
	if len(all) != len(b.nodes) {
		t.Fatalf("%s: %d nodes have %d DSNs", name, len(b.nodes), len(all))
	}
	var addrs []string
	for _, dsn := range all {
		db, err := gorm.Open(databases[b.kind].dialector(s.pool(s.operatorDSN(dsn))), &gorm.Config{Logger: logger.Discard})
		if err != nil {
			t.Fatal(err)
		}
		s.admin, addrs = append(s.admin, db), append(addrs, testdb.AddrOf(t, dsn))
		s.past = append(s.past, s.workersDSN(dsn)+b.params)
	}
	if !s.stack.Network {
		s.leaveOut(nodeCut, "that takes root")
		s.leaveOut(cutWriter, "that takes root")
	}
	if !s.stack.Disk {
		s.leaveOut(fullDisk, "that takes root")
	}
	if err := canTrace(); err != nil {
		s.leaveOut(slowDisk, err.Error())
	}
	s.front = newFront(t, addrs, b.spread, s.asksBy(all))
	s.awaitStands()
	for _, statement := range b.users {
		if err := s.admin[s.front.present()].Exec(statement).Error; err != nil {
			t.Fatal(err)
		}
	}
	if s.dsns = s.front.through(t, s.past); b.pooler != "" {
		s.dsns = s.stack.DSNs(t, b.pooler)
		s.dsns[0] += b.params
		s.pooled = s.pool(s.dsns[0])
	}
	return s
}

// pool returns a pool of one connection, which may be broken when the test ends.
func (s *standing) pool(dsn string) *sql.DB {
	connector, err := databases[s.kind].connector(dsn, new(net.Dialer).DialContext)
	if err != nil {
		s.t.Fatal(err)
	}
	pool := sql.OpenDB(connector)
	pool.SetMaxOpenConns(1)
	s.t.Cleanup(func() { _ = pool.Close() })
	return pool
}

// asksBy returns what asks nodes whether they take writes.
func (s *standing) asksBy(dsns []string) func(context.Context, int) bool {
	var pools []*sql.DB
	for _, dsn := range dsns {
		pools = append(pools, s.pool(dsn))
	}
	return func(ctx context.Context, node int) (takes bool) {
		for range 2 { // its connection may be cut, which says nothing of the node
			if pools[node].QueryRowContext(ctx, s.writes).Scan(&takes) == nil {
				return takes
			}
		}
		return false
	}
}

// checkNodes checks that all nodes have the same rows, as soon as they have applied all. One
// may be put out shortly after the last fault, and is brought back first.
func (s *standing) checkNodes(want rows) {
	s.stack.Stack(s.t, "heal")
	for n, db := range s.admin {
		var differs string
		for until := time.Now().Add(20 * time.Second); ; <-time.After(100 * time.Millisecond) {
			got, err := findRows(db)
			if err != nil {
				differs = err.Error()
			} else if differs = difference(got, want); differs == "" {
				break
			}
			if time.Now().After(until) {
				s.t.Errorf("%s has other rows than the workers' database: %s", s.nodes[n], differs)
				break
			}
		}
	}
}

// difference says in which rows of which table two databases differ, or returns "".
func difference(got, want rows) string {
	a, b := reflect.ValueOf(got), reflect.ValueOf(want)
	var tables []string
	for i := range a.NumField() {
		if reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			continue
		}
		tables = append(tables, fmt.Sprintf("%s: only here %+v, only there %+v", a.Type().Field(i).Name, only(a.Field(i), b.Field(i)), only(b.Field(i), a.Field(i))))
	}
	return strings.Join(tables, "; ")
}

// only returns the rows of a table that another does not have.
func only(table, other reflect.Value) (rows []any) {
	there := make(map[any]bool)
	for i := range other.Len() {
		there[other.Index(i).Interface()] = true
	}
	for i := range table.Len() {
		if row := table.Index(i).Interface(); !there[row] {
			rows = append(rows, row)
		}
	}
	return rows
}

// keepLogs keeps the servers' logs of a run that has failed.
func (s *standing) keepLogs() {
	if s.t.Failed() {
		_ = os.CopyFS(filepath.Join(s.t.logs, "servers"), os.DirFS(s.stack.Logs()))
	}
}

// leaveOut takes a fault out of the deck that can't be done here.
func (s *standing) leaveOut(kind faultKind, why string) {
	deck := slices.DeleteFunc(slices.Clone(s.deck), func(k faultKind) bool { return k == kind })
	if len(deck) < len(s.deck) {
		fmt.Printf("belay chaos: left out: %s: %s\n", kind, why)
	}
	s.deck = deck
}

// serviceUser is the workers' user of a bed, and its password.
const serviceUser = "service"

// operatorDSN returns a node's DSN with a user who may do everything.
func (s *standing) operatorDSN(dsn string) string {
	if s.operator == "" {
		return dsn
	}
	return s.operator + strings.TrimPrefix(dsn, s.user)
}

// workersDSN returns a node's DSN with the user of the workers.
func (s *standing) workersDSN(dsn string) string {
	if s.user != serviceUser {
		return dsn
	}
	scheme, rest, isURL := strings.Cut(dsn, "://")
	if !isURL {
		scheme, rest = "", dsn
	}
	_, rest, found := strings.Cut(rest, "@")
	if !found {
		s.t.Fatal("a DSN without a user")
	}
	if isURL {
		scheme += "://"
	}
	return scheme + serviceUser + ":" + serviceUser + "@" + rest
}

// awaitStands waits until the front has somewhere to lead to, and where each node takes
// writes, until all do; and until a pooler serves.
func (s *standing) awaitStands() {
	for until := time.Now().Add(5 * time.Minute); !s.front.stands(true) || !s.pools(); <-time.After(20 * time.Millisecond) {
		if time.Now().After(until) {
			s.t.Fatalf("%v do not take writes again", s.nodes)
		}
	}
}

// pools reports whether the pooler serves, or there is none.
func (s *standing) pools() bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return s.pooled == nil || s.pooled.PingContext(ctx) == nil
}

// node returns the one that a step is about.
func (s *standing) node(whom uint32) int { return int(whom) % len(s.nodes) }

// Faults of beds.
const (
	nodeKilled   faultKind = "node killed"
	twoKilled    faultKind = "two nodes killed"
	allKilled    faultKind = "all nodes killed"
	nodePaused   faultKind = "node paused"
	nodeCut      faultKind = "node partitioned"
	promotion    faultKind = "writer killed, another promoted"
	pausedWriter faultKind = "writer paused, another promoted"
	cutWriter    faultKind = "writer cut off, another promoted"
	switchOver   faultKind = "another promoted"
	readOnly     faultKind = "node read-only"
	storm        faultKind = "connection storm"
	slowDisk     faultKind = "fsync delayed"
	fullDisk     faultKind = "disk full"
	poolerKilled faultKind = "pooler killed"
	poolerPaused faultKind = "pooler paused"
)

// ofBed reports whether a fault is one of nodes of a bed.
func (k faultKind) ofBed() bool {
	return slices.Contains([]faultKind{
		nodeKilled, twoKilled, allKilled, nodePaused, nodeCut, promotion, pausedWriter, cutWriter, switchOver, readOnly, storm, slowDisk, fullDisk, poolerKilled, poolerPaused,
	}, k)
}

// hurtBed does a great fault to the bed, and waits until it is whole again.
func (w *wrecker) hurtBed(s step) {
	b := w.server.bed
	n := b.node(s.Whom)
	from := func(count int) (nodes []string) {
		for i := range count {
			nodes = append(nodes, b.nodes[(n+i)%len(b.nodes)])
		}
		return nodes
	}
	switch s.Kind {
	case nodeKilled:
		w.killNodes(s, from(1), "start")
	case twoKilled:
		w.killNodes(s, from(2), "heal")
	case allKilled:
		w.killNodes(s, from(len(b.nodes)), "heal")
	case nodeCut:
		w.hurtNode(s, n, func() { b.stack.Stack(w.t, "cut", b.nodes[n]) }, func() { b.stack.Stack(w.t, "mend", b.nodes[n]) })
	case poolerKilled:
		w.killNodes(s, b.Servers[1:], "start")
	case poolerPaused:
		w.hurtFor(s, b.Servers[1], func() { b.stack.Stack(w.t, "pause", b.Servers[1]) }, func() { b.stack.Stack(w.t, "resume", b.Servers[1]) })
	case nodePaused:
		w.hurtNode(s, n, func() { b.stack.Stack(w.t, "pause", b.nodes[n]) }, func() { b.stack.Stack(w.t, "resume", b.nodes[n]) })
	case promotion:
		w.promote(s, "kill", "start")
	case pausedWriter:
		w.promote(s, "pause", "resume", "start")
	case cutWriter:
		w.promote(s, "cut", "mend", "start")
	case switchOver:
		w.promote(s, "", "start")
	case readOnly:
		if !b.spread { // a replica is so anyway, and has to remain it
			b.awaitStands()
			n = b.front.present()
		}
		w.hurtNode(s, n, func() { b.setReadOnly(n, true) }, func() { b.setReadOnly(n, false) })
	case fullDisk:
		w.fillDisk(s)
	case storm:
		w.storm(s, n)
	case slowDisk:
		w.slowDown(s, n)
	default:
		w.t.Fatalf("no bed has the fault %q", s.Kind)
	}
}

// promote has another node take the place of the writer, to which something is done before.
// after are the commands that make it the other one's replica.
func (w *wrecker) promote(s step, before string, after ...string) {
	b := w.server.bed
	b.awaitStands()
	old := b.front.present()
	next := (old + 1) % len(b.nodes)
	w.hurt(s.Kind, b.nodes[old], func() bool {
		if before != "" {
			b.stack.Stack(w.t, before, b.nodes[old])
		}
		w.linger(s.For / 2)
		b.stack.Stack(w.t, "promote", b.nodes[next])
		w.await("the promoted node takes writes", func() bool { return b.front.move(next) })
		w.linger(s.For)
		for _, command := range after {
			b.stack.Stack(w.t, command, b.nodes[old])
		}
		b.awaitStands()
		return true
	})
}

// aWhile is how long a node is hurt at least: long enough for the others to notice.
const aWhile = 3 * time.Second

// hurtNode hurts a node for a while.
func (w *wrecker) hurtNode(s step, n int, begin, end func()) {
	w.hurtFor(s, w.server.bed.nodes[n], begin, end)
}

// hurtFor hurts a node or the pooler for a while.
func (w *wrecker) hurtFor(s step, node string, begin, end func()) {
	w.hurt(s.Kind, node, func() bool {
		begin()
		w.linger(max(aWhile, w.server.bed.notices) + s.For)
		end()
		w.server.bed.stack.Stack(w.t, "start", node) // it may have been put out
		w.server.bed.awaitStands()
		return true
	})
}

// killNodes kills nodes at once and starts them again, by a command of scripts/stack.
func (w *wrecker) killNodes(s step, nodes []string, again string) {
	b := w.server.bed
	w.hurt(s.Kind, strings.Join(nodes, " "), func() bool {
		for _, node := range nodes {
			b.stack.Stack(w.t, "kill", node)
		}
		w.linger(s.For)
		if again == "heal" {
			b.stack.Stack(w.t, "heal")
		} else {
			b.stack.Stack(w.t, again, nodes[0])
		}
		b.awaitStands()
		return true
	})
}
