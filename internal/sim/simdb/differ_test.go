package simdb

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

// A side executes schedules: the simulation, or a real server.
type side interface {
	// send sends a statement, which may have to wait.
	send(session int, st sent)
	// settle returns the results that have come, by session, once all other sessions
	// that have sent something wait for a lock.
	settle() map[int]string
	// pass returns those that come when time passes.
	pass() map[int]string
	// rows returns the rows of a schedule.
	rows() []string
}

// trace executes a schedule and returns what happened at each step.
func (s *schedule) trace(sd side) (lines []string) {
	at, waits := make([]int, len(s.sessions)), make([]bool, len(s.sessions))
	note := func(line string, came map[int]string) {
		for n := range s.sessions {
			if result, ok := came[n]; ok {
				waits[n] = false
				line += fmt.Sprintf(" | %d %s", n, result)
			} else if waits[n] {
				line += fmt.Sprintf(" | %d waits", n)
			}
		}
		lines = append(lines, line)
	}
	step := func(i int) bool {
		if waits[i] || at[i] == len(s.sessions[i]) {
			return false
		}
		st := s.sessions[i][at[i]]
		at[i]++
		waits[i] = true
		sd.send(i, st)
		note(fmt.Sprintf("%d: %s", i, st.short()), sd.settle())
		return true
	}
	for _, i := range s.order {
		if i != passes {
			step(i)
		} else if slices.Contains(waits, true) {
			note("time passes", sd.pass())
		}
	}
	for again := true; again; {
		again = false
		for i := range s.sessions {
			again = step(i) || again
		}
	}
	if slices.Contains(waits, true) {
		lines = append(lines, "waits for ever")
	}
	return append(lines, sd.rows()...)
}

// resultOf writes the result of a statement.
func resultOf(rows [][]any, affected int64, err error) string {
	var my *mysql.MySQLError
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &my):
		return fmt.Sprintf("error %d", my.Number)
	case errors.As(err, &pg):
		return "error " + pg.Code
	case err != nil:
		return "error " + err.Error()
	case rows != nil:
		slices.SortFunc(rows, compareKeys) // those of RETURNING come in any order
		return fmt.Sprint(rows)
	}
	return fmt.Sprint(affected)
}

// simulated is the simulation.
type simulated struct {
	db       *Database
	s        *schedule
	sessions []*session
	came     chan struct {
		session int
		result  string
	}
}

// sentinels returns the statements that make the tables, with a last row each.
func sentinels(postgres bool) []string {
	name := map[bool]string{false: "mysql.sql", true: "postgres.sql"}[postgres]
	all := slices.Clip(tables[postgres])
	for _, folder := range []string{"../../../notify/outbox/schema", "../../../once/schema", "../../pending/schema"} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			panic(err)
		}
		all = append(all, strings.Split(string(text), ";\n")...)
	}
	return all
}

// fill returns the statements that add so many rows before all others that the planner of
// MariaDB looks rows up by their keys.
func fill(postgres bool) []string {
	if postgres {
		return nil
	}
	return []string{
		"INSERT INTO `orders` (`no`,`amount`) SELECT CONCAT('!', seq), 0 FROM seq_1_to_60",
		"INSERT INTO `stocks` (`id`,`left`,`version`) SELECT -seq, 0, 1 FROM seq_1_to_60",
		"ANALYZE TABLE `orders`, `stocks`",
	}
}

var tables = map[bool][]string{
	false: {
		"CREATE TABLE `orders` (`id` BIGINT NOT NULL AUTO_INCREMENT, `no` VARCHAR(64) COLLATE utf8mb4_bin NOT NULL, `amount` BIGINT, PRIMARY KEY (`id`), UNIQUE KEY `orders_no` (`no`)) DEFAULT CHARACTER SET utf8mb4",
		"CREATE TABLE `stocks` (`id` BIGINT NOT NULL, `left` BIGINT, `version` BIGINT NOT NULL, PRIMARY KEY (`id`))",
		"INSERT INTO `orders` (`no`,`amount`) VALUES ('~',0)",
		"INSERT INTO `stocks` (`id`,`left`,`version`) VALUES (1000000000000000,0,1)",
	},
	true: {
		`CREATE TABLE "orders" ("id" BIGSERIAL PRIMARY KEY, "no" VARCHAR(64) COLLATE "C" NOT NULL, "amount" BIGINT)`,
		`CREATE UNIQUE INDEX orders_no ON orders ("no")`,
		`CREATE TABLE "stocks" ("id" BIGINT NOT NULL PRIMARY KEY, "left" BIGINT, "version" BIGINT NOT NULL)`,
	},
}

func newSimulated(p Personality, s *schedule) *simulated {
	db := New(p, Knobs{Unknown: func(error) {}})
	db.Exec(sentinels(db.postgres())...)
	sim := &simulated{db: db, s: s}
	sim.came = make(chan struct {
		session int
		result  string
	}, len(s.sessions))
	first := db.newSession()
	for _, st := range s.seeded() {
		if r := first.call(sim.text(st), st.args); r.err != nil {
			panic(r.err)
		}
	}
	for range s.sessions {
		sim.sessions = append(sim.sessions, db.newSession())
	}
	return sim
}

func (s *simulated) text(st sent) string {
	if s.db.postgres() {
		return st.postgres().sql
	}
	return st.sql
}

func (s *simulated) send(i int, st sent) {
	go func() {
		res := s.sessions[i].call(s.text(st), st.args)
		rows := res.rows
		if rows == nil && res.columns != nil {
			rows = [][]any{}
		}
		s.came <- struct {
			session int
			result  string
		}{i, resultOf(rows, res.affected, res.err)}
	}()
}

func (s *simulated) settle() map[int]string {
	synctest.Wait()
	<-time.After(time.Millisecond)
	for s.cycle() {
		<-time.After(time.Second)
		synctest.Wait()
	}
	came := make(map[int]string)
	for len(s.came) > 0 {
		c := <-s.came
		came[c.session] = c.result
	}
	return came
}

// bound is longer than the waits that are bounded, and shorter than those that are not.
const bound = 2500 * time.Millisecond

func (s *simulated) pass() map[int]string {
	<-time.After(bound)
	return s.settle()
}

func (s *simulated) cycle() bool {
	found := false
	s.db.with(func() {
		found = s.db.postgres() && slices.ContainsFunc(s.sessions, func(o *session) bool { return o.tx != nil && o.busy && o.tx.deadlocked() })
	})
	return found
}

func (s *simulated) rows() (all []string) {
	for _, name := range []string{"orders", "stocks", "belay_outbox", "belay_once", "belay_answer", "belay_pending"} {
		var found []string
		for _, r := range s.db.Rows(name) {
			if name == "belay_once" || name == "belay_answer" {
				found = append(found, fmt.Sprint(r["request"], " ", cmp.Or(r["attempt"], r["body"])))
			}
			if name == "belay_pending" {
				found = append(found, fmt.Sprint(r["request"], " ", r["attempt"], " ", r["tries"], " ", r["answered"]))
			}
			if name == "belay_outbox" {
				found = append(found, fmt.Sprint(r["id"], " ", r["event_id"], " ", r["attempts"]))
			}
			if name == "orders" && r["no"] != "~" {
				found = append(found, fmt.Sprint(r["no"], " ", r["amount"]))
			}
			if name == "stocks" && r["id"] != int64(1000000000000000) {
				found = append(found, fmt.Sprint(r["id"], " ", r["left"], " ", r["version"]))
			}
		}
		slices.Sort(found)
		all = append(all, found...)
	}
	return all
}

// simulate executes a schedule on the simulation. choices say who of several that were
// woken at once goes on first; the others that were possible are returned.
func simulate(t *testing.T, p Personality, s *schedule, choices []int) (lines []string, options []int, raced bool) {
	synctest.Test(t, func(*testing.T) {
		sim := newSimulated(p, s)
		sim.db.pick = func(n int) int {
			options = append(options, n)
			if at := len(options) - 1; at < len(choices) {
				return choices[at]
			}
			return 0
		}
		lines = s.trace(sim)
		raced = sim.db.raced && p != PostgreSQL
		for _, o := range sim.sessions {
			sim.db.KillSession(o.id)
		}
	})
	return lines, options, raced
}

// possible reports whether the simulation can give a trace, whoever goes on first.
func possible(t *testing.T, p Personality, s *schedule, want []string) (first []string, ok bool) {
	todo := [][]int{nil}
	for n := 0; len(todo) > 0 && n < 1000; n++ {
		choices := todo[0]
		todo = todo[1:]
		lines, options, raced := simulate(t, p, s, choices)
		s.raced = s.raced || raced
		if first == nil {
			first = lines
		}
		if slices.Equal(lines, want) {
			return first, true
		}
		for at := len(choices); at < len(options); at++ {
			for other := 1; other < options[at]; other++ {
				next := append(slices.Clone(choices), make([]int, at-len(choices))...)
				todo = append(todo, append(next, other))
			}
		}
	}
	return first, false
}

// A server is a real one.
type server struct {
	t        *testing.T
	postgres bool
	pool     *sql.DB
	admin    *sql.Conn // for questions
	keeper   *sql.Conn // has a snapshot, so that nothing is purged
	conns    []*sql.Conn
	ids      []int64
	s        *schedule
	came     chan struct {
		session int
		result  string
	}
	pending map[int]bool
	n       int
}

var ctx = context.Background()

func newServer(t *testing.T, p Personality) *server {
	r := &server{t: t, postgres: p == PostgreSQL}
	var name, dsn string
	if r.postgres {
		name, dsn = "pgx", teststack.Postgres(t)+"&default_query_exec_mode=simple_protocol&enable_seqscan=off&enable_bitmapscan=off"
	} else {
		name, dsn = "mysql", teststack.MySQL(t)+"&interpolateParams=true"
		if p == MariaDBSnapshot {
			dsn += "&innodb_snapshot_isolation=1"
		}
	}
	var err error
	if r.pool, err = sql.Open(name, dsn); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.pool.Close() })
	for i := range 5 {
		c, err := r.pool.Conn(ctx)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		switch i {
		case 0:
			r.admin = c
		case 1:
			r.keeper = c
		default:
			question := map[bool]string{false: "SELECT CONNECTION_ID()", true: "SELECT pg_backend_pid()"}[r.postgres]
			var id int64
			if err := c.QueryRowContext(ctx, question).Scan(&id); err != nil {
				t.Fatal(err)
			}
			r.conns, r.ids = append(r.conns, c), append(r.ids, id)
		}
	}
	return r
}

func (r *server) exec(c *sql.Conn, sql string, args ...any) {
	if _, err := c.ExecContext(ctx, sql, args...); err != nil {
		r.t.Fatalf("%s: %v", sql, err)
	}
}

// prepare makes the rows of a schedule. The tables are made anew from time to time, so
// that their indexes have one page.
func (r *server) prepare(s *schedule) {
	if r.n++; r.n%20 == 1 {
		for _, name := range []string{"orders", "stocks", "belay_outbox", "belay_once", "belay_answer", "belay_pending"} {
			r.exec(r.admin, "DROP TABLE IF EXISTS "+name)
		}
		for _, sql := range append(sentinels(r.postgres), fill(r.postgres)...) {
			r.exec(r.admin, sql)
		}
	}
	r.s = s
	r.came = make(chan struct {
		session int
		result  string
	}, len(r.conns))
	r.pending = make(map[int]bool)
	if s.outbox {
		r.exec(r.admin, map[bool]string{false: "TRUNCATE TABLE belay_outbox", true: "TRUNCATE TABLE belay_outbox RESTART IDENTITY"}[r.postgres])
	}
	for _, name := range []string{"belay_once", "belay_answer", "belay_pending"} {
		if s.once {
			r.exec(r.admin, "TRUNCATE TABLE "+name)
		}
	}
	for _, st := range s.seeded() {
		if r.postgres {
			st = st.postgres()
		}
		r.exec(r.admin, st.sql, st.args...)
	}
	if !r.postgres {
		r.exec(r.keeper, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
	}
}

func (r *server) finish() {
	for _, c := range r.conns {
		r.exec(c, "ROLLBACK")
		if !r.postgres {
			r.exec(c, returnMy)
		}
	}
	if !r.postgres {
		r.exec(r.keeper, "COMMIT")
	}
}

func (r *server) send(i int, st sent) {
	if r.postgres {
		st = st.postgres()
	}
	r.pending[i] = true
	go func() {
		c := struct {
			session int
			result  string
		}{session: i}
		if strings.HasPrefix(st.sql, "SELECT") || strings.Contains(st.sql, "RETURNING") {
			rows, err := r.query(r.conns[i], st.sql, st.args...)
			c.result = resultOf(rows, 0, err)
		} else if res, err := r.conns[i].ExecContext(ctx, st.sql, st.args...); err != nil {
			c.result = resultOf(nil, 0, err)
		} else {
			n, _ := res.RowsAffected()
			c.result = resultOf(nil, n, nil)
		}
		r.came <- c
	}()
}

func (r *server) query(c *sql.Conn, sql string, args ...any) ([][]any, error) {
	found, err := c.QueryContext(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	names, err := found.Columns()
	all := [][]any{}
	for err == nil && found.Next() {
		row, into := make([]any, len(names)), make([]any, len(names))
		for i := range row {
			into[i] = &row[i]
		}
		err = found.Scan(into...)
		for i, v := range row {
			if b, ok := v.([]byte); ok {
				row[i] = string(b)
			}
		}
		all = append(all, row)
	}
	return all, errors.Join(err, found.Err())
}

func (r *server) pass() map[int]string { return r.await(bound) }

func (r *server) settle() map[int]string { return r.await(0) }

// await returns the results that have come when all others wait, and it has waited for them
// for a while.
func (r *server) await(while time.Duration) map[int]string {
	came := make(map[int]string)
	take := func(wait time.Duration) (more bool) {
		timeout := time.After(wait)
		for len(r.pending) > 0 {
			select {
			case c := <-r.came:
				came[c.session] = c.result
				delete(r.pending, c.session)
				more = true
			case <-timeout:
				return more
			}
		}
		return more
	}
	take(while)
	calm := 0
	for begin := time.Now(); ; {
		take(500 * time.Microsecond)
		if len(r.pending) == 0 {
			return came
		}
		if r.allWait() {
			calm++
		} else {
			calm = 0
		}
		if calm > 1 && !take(0) {
			return came
		}
		if time.Since(begin) > 30*time.Second {
			r.t.Fatalf("it does not settle\n%v", r.s)
		}
	}
}

// allWait asks the server whether all sessions that have sent something wait for a lock,
// and no deadlock is to be found yet.
func (r *server) allWait() bool {
	if r.postgres {
		return r.allWaitPostgres()
	}
	waiting, err := testdb.InnoDBWaiting(ctx, r.admin)
	if err != nil {
		r.t.Fatal(err)
	}
	for i := range r.pending {
		if !slices.Contains(waiting, r.ids[i]) {
			return false
		}
	}
	return true
}

func (r *server) allWaitPostgres() bool {
	blockers := make(map[int64][]int64)
	found, err := r.query(r.admin, "SELECT pid, array_to_string(pg_blocking_pids(pid), ' ') FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
	if err != nil {
		r.t.Fatal(err)
	}
	for _, row := range found {
		for f := range strings.FieldsSeq(row[1].(string)) {
			n, _ := strconv.ParseInt(f, 10, 64)
			blockers[row[0].(int64)] = append(blockers[row[0].(int64)], n)
		}
	}
	for i := range r.pending {
		if len(blockers[r.ids[i]]) == 0 || reaches(blockers, r.ids[i], r.ids[i], 0) {
			return false
		}
	}
	return true
}

func reaches(edges map[int64][]int64, from, to int64, depth int) bool {
	return depth < 5 && slices.ContainsFunc(edges[from], func(n int64) bool { return n == to || reaches(edges, n, to, depth+1) })
}

func (r *server) rows() (all []string) {
	defer r.finish()
	for _, q := range []sent{
		{"SELECT `no`,`amount` FROM `orders` WHERE `no` IN (?,?,?) ORDER BY `no`", []any{r.s.key(0), r.s.key(1), r.s.key(2)}},
		{"SELECT `id`,`left`,`version` FROM `stocks` WHERE `id` IN (?,?,?) ORDER BY `id`", []any{r.s.id(0), r.s.id(1), r.s.id(2)}},
		{"SELECT id, event_id, attempts FROM belay_outbox ORDER BY id", nil},
		{"SELECT request, attempt FROM belay_once ORDER BY request", nil},
		{"SELECT request, body FROM belay_answer ORDER BY request", nil},
		{"SELECT request, attempt, tries, answered FROM belay_pending ORDER BY request", nil},
	} {
		requests := strings.Contains(q.sql, "request")
		if strings.Contains(q.sql, "outbox") != r.s.outbox || requests && !r.s.once {
			continue
		}
		if r.postgres {
			q = q.postgres()
		}
		found, err := r.query(r.admin, q.sql, q.args...)
		if err != nil {
			r.t.Fatal(err)
		}
		var lines []string
		for _, row := range found {
			lines = append(lines, strings.Trim(fmt.Sprint(row), "[]"))
		}
		slices.Sort(lines)
		all = append(all, lines...)
	}
	return all
}

// run executes a schedule on the server.
func (r *server) run(s *schedule) []string {
	r.prepare(s)
	return s.trace(r)
}

// TestAsRealServers compares random schedules on the simulation and on real servers.
// BELAY_SIMDB is how many there are on each; BELAY_SIMDB_SEED is the first.
func TestAsRealServers(t *testing.T) {
	total, first := 300, 1
	for name, n := range map[string]*int{"BELAY_SIMDB": &total, "BELAY_SIMDB_SEED": &first} {
		if text := os.Getenv(name); text != "" {
			var err error
			if *n, err = strconv.Atoi(text); err != nil {
				t.Fatal(name, err)
			}
		}
	}
	var done [3]atomic.Int64
	var differences atomic.Int64
	for name, p := range map[string]Personality{"mariadb": MariaDB, "snapshot": MariaDBSnapshot, "postgres": PostgreSQL} {
		n := total
		if p == MariaDBSnapshot {
			n /= 4
		}
		t.Run(name, func(t *testing.T) {
			const workers = 4
			for w := range workers {
				t.Run(fmt.Sprint(w), func(t *testing.T) {
					t.Parallel()
					r := newServer(t, p)
					for seed := first + w; seed < first+n && differences.Load() < 5; seed += workers {
						s := newSchedule(uint64(seed))
						if !same(t, r, p, s) {
							differences.Add(1)
						}
						if !s.raced {
							done[p].Add(1)
						}
					}
				})
			}
		})
	}
	t.Logf("belay simdb: %d schedules on MariaDB, %d on PostgreSQL, %d differences",
		done[MariaDB].Load()+done[MariaDBSnapshot].Load(), done[PostgreSQL].Load(), differences.Load())
}

// same reports whether a schedule gives the same on both.
func same(t *testing.T, r *server, p Personality, s *schedule) bool {
	want := r.run(s)
	if _, ok := possible(t, p, s, want); ok {
		return true
	}
	if s.raced {
		return true
	}
	fails := func(s *schedule) bool {
		r.n = 0 // the rows of the same seed are there
		got, ok := possible(t, p, s, r.run(s))
		return !ok && !s.raced && !strings.Contains(strings.Join(got, ""), errUnknown.Error())
	}
	again := func(s *schedule) bool {
		for range 2 {
			if !fails(s) {
				return false
			}
		}
		return true
	}
	if !again(s) {
		got, _, _ := simulate(t, p, s, nil)
		t.Logf("a difference did not come again:\n  %s\nsimulated:\n  %s", strings.Join(want, "\n  "), strings.Join(got, "\n  "))
		r.n = 0
		return true
	}
	small := s.shrink(again)
	r.n = 0
	want = r.run(small)
	got, _ := possible(t, p, small, want)
	r.n = 0
	t.Errorf("%v real:\n  %s\n simulated:\n  %s", small, strings.Join(want, "\n  "), strings.Join(got, "\n  "))
	return false
}

// TestSameTwice: a schedule gives the same trace each time.
func TestSameTwice(t *testing.T) {
	for _, p := range []Personality{MariaDB, MariaDBSnapshot, PostgreSQL} {
		for seed := range uint64(200) {
			s := newSchedule(seed)
			once, twice := simulateAlone(t, p, s), simulateAlone(t, p, s)
			if !slices.Equal(once, twice) {
				t.Fatalf("%v\nonce:\n  %s\ntwice:\n  %s", s, strings.Join(once, "\n  "), strings.Join(twice, "\n  "))
			}
		}
	}
}

// simulateAlone executes a schedule as a scheduler would: nobody chooses between those that
// were woken at once.
func simulateAlone(t *testing.T, p Personality, s *schedule) (lines []string) {
	synctest.Test(t, func(*testing.T) {
		sim := newSimulated(p, s)
		lines = s.trace(sim)
		for _, o := range sim.sessions {
			sim.db.KillSession(o.id)
		}
	})
	return lines
}
