package sim

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/sim/simdb"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/memlock"
)

// The rows that keys protect: those of one key have its name, or its number.
type (
	// Order has a key that the database generates.
	Order struct {
		ID int64
		No string `gorm:"size:64;uniqueIndex"`
	}
	// Label has a key of its own.
	Label struct {
		Code   string `gorm:"size:64;primaryKey"`
		Amount int
	}
	// Stock is counted down: all who update it write the same values.
	Stock struct {
		ID      int64
		Left    int
		Version dbguard.Version
	}
	// Ware is a Stock that says who wrote it.
	Ware struct {
		ID      int64
		Left    int
		Version dbguard.Version
		Stamp   dbguard.Stamp
	}
	// Account names who has changed it, in their order.
	Account struct {
		ID      int64
		Left    int
		Names   string `gorm:"size:250"`
		Version dbguard.Version
	}
	// Purse is an Account that says who wrote it.
	Purse struct {
		ID      int64
		Left    int
		Names   string `gorm:"size:250"`
		Version dbguard.Version
		Stamp   dbguard.Stamp
	}
)

const full = 100 // Left, before anybody takes one

// tables are those whose rows the oracle follows.
var tables = []string{"orders", "labels", "stocks", "wares", "accounts", "purses"}

// schemas make the tables.
var schemas = map[string][]string{
	"mysql": {
		"CREATE TABLE orders (id BIGINT AUTO_INCREMENT, no VARCHAR(64), PRIMARY KEY (id), UNIQUE INDEX idx_orders_no (no))",
		"CREATE TABLE labels (code VARCHAR(64) NOT NULL, amount BIGINT, PRIMARY KEY (code))",
		"CREATE TABLE notes (id BIGINT AUTO_INCREMENT, op VARCHAR(64), PRIMARY KEY (id))",
		"CREATE TABLE stocks (id BIGINT NOT NULL, `left` BIGINT, version BIGINT, PRIMARY KEY (id))",
		"CREATE TABLE wares (id BIGINT NOT NULL, `left` BIGINT, version BIGINT, stamp BIGINT, PRIMARY KEY (id))",
		"CREATE TABLE accounts (id BIGINT NOT NULL, `left` BIGINT, names VARCHAR(250), version BIGINT, PRIMARY KEY (id))",
		"CREATE TABLE purses (id BIGINT NOT NULL, `left` BIGINT, names VARCHAR(250), version BIGINT, stamp BIGINT, PRIMARY KEY (id))",
	},
	"postgres": {
		"CREATE TABLE orders (id BIGSERIAL, no VARCHAR(64), PRIMARY KEY (id), CONSTRAINT idx_orders_no UNIQUE (no))",
		"CREATE TABLE labels (code VARCHAR(64) NOT NULL, amount BIGINT, PRIMARY KEY (code))",
		"CREATE TABLE notes (id BIGSERIAL, op VARCHAR(64), PRIMARY KEY (id))",
		`CREATE TABLE stocks (id BIGINT NOT NULL, "left" BIGINT, version BIGINT, PRIMARY KEY (id))`,
		`CREATE TABLE wares (id BIGINT NOT NULL, "left" BIGINT, version BIGINT, stamp BIGINT, PRIMARY KEY (id))`,
		`CREATE TABLE accounts (id BIGINT NOT NULL, "left" BIGINT, names VARCHAR(250), version BIGINT, PRIMARY KEY (id))`,
		`CREATE TABLE purses (id BIGINT NOT NULL, "left" BIGINT, names VARCHAR(250), version BIGINT, stamp BIGINT, PRIMARY KEY (id))`,
	},
}

// callSchemas make the tables of what is reserved and settled.
var callSchemas = map[string][]string{
	"mysql": {
		"CREATE TABLE holds (id BIGINT AUTO_INCREMENT, request VARCHAR(64), op VARCHAR(64), PRIMARY KEY (id), UNIQUE INDEX idx_holds_op (op))",
		"CREATE TABLE bills (id BIGINT AUTO_INCREMENT, request VARCHAR(64), op VARCHAR(64), declined BOOLEAN, PRIMARY KEY (id), UNIQUE INDEX idx_bills_op (op))",
	},
	"postgres": {
		"CREATE TABLE holds (id BIGSERIAL, request VARCHAR(64), op VARCHAR(64), PRIMARY KEY (id), CONSTRAINT idx_holds_op UNIQUE (op))",
		"CREATE TABLE bills (id BIGSERIAL, request VARCHAR(64), op VARCHAR(64), declined BOOLEAN, PRIMARY KEY (id), CONSTRAINT idx_bills_op UNIQUE (op))",
	},
}

func newDatabase(p plan) *simdb.Database {
	db := simdb.New(p.server, p.knobs)
	db.Exec(schemas[p.dialect]...)
	if p.outbox {
		db.Exec(schemaOf("notify/outbox", p.dialect)...)
	}
	if p.serves() {
		db.Exec(schemaOf("once", p.dialect)...)
	}
	if p.sendsAny() {
		db.Exec(schemaOf("internal/message", p.dialect)...)
	}
	if p.calls() {
		db.Exec(schemaOf("internal/pending", p.dialect)...)
		db.Exec(callSchemas[p.dialect]...)
	}
	for id := 1; id <= 2; id++ {
		db.Exec(fmt.Sprintf(quoted(p.dialect, "INSERT INTO stocks (id, `left`, version) VALUES (%d, %d, 1)"), id, full),
			fmt.Sprintf(quoted(p.dialect, "INSERT INTO wares (id, `left`, version, stamp) VALUES (%d, %d, 1, 0)"), id, full),
			fmt.Sprintf(quoted(p.dialect, "INSERT INTO accounts (id, `left`, names, version) VALUES (%d, %d, '', 1)"), id, full),
			fmt.Sprintf(quoted(p.dialect, "INSERT INTO purses (id, `left`, names, version, stamp) VALUES (%d, %d, '', 1, 0)"), id, full))
	}
	return db
}

// schemaOf returns the statements that make the tables of a package.
func schemaOf(folder, dialect string) []string {
	text, err := os.ReadFile("../../" + folder + "/schema/" + dialect + ".sql")
	must(err)
	return strings.Split(string(text), ";\n")
}

func quoted(dialect, sql string) string {
	if dialect == "postgres" {
		return strings.ReplaceAll(sql, "`", `"`)
	}
	return sql
}

var personalities = map[string]simdb.Personality{"mysql": simdb.MariaDB, "postgres": simdb.PostgreSQL}

// A base is a gorm.DB of each dialect. Each process has one with another pool: to open one
// and to parse the models takes longer than a schedule.
var base = map[string]*gorm.DB{}

func openBase() {
	for name, d := range map[string]gorm.Dialector{
		"mysql":    mysql.New(mysql.Config{Conn: nowhere{}, SkipInitializeWithVersion: true}),
		"postgres": postgres.New(postgres.Config{Conn: nowhere{}}),
	} {
		db, err := gorm.Open(d, &gorm.Config{Logger: logger.Discard, DisableAutomaticPing: true})
		must(err)
		base[name] = db
		warm(name)
	}
}

// warm does each operation twice, outside of a bubble: what gorm learns of the models it
// keeps in channels, which belong to the bubble that made them.
func warm(dialect string) {
	locker, err := lock.New(memlock.New(), lock.Config{Logger: silent})
	must(err)
	all := plan{dialect: dialect, server: personalities[dialect], purges: true, work: [][][]spec{{nil}}}
	for _, work := range workloads {
		all.work[0][0] = append(all.work[0][0], spec{work: work})
	}
	db := newDatabase(all)
	p := &process{dialect: dialect, pool: sql.OpenDB(db.Connector("warm", open{}))}
	p.db = openOn(dialect, p.pool)
	p.guard, err = guard.New(base[dialect], locker, guard.Config{Service: "warm", Logger: silent}) // base learns the callbacks
	must(err)
	p.guard, err = guard.New(p.db, locker, guard.Config{Service: "warm", Logger: silent})
	must(err)
	for _, work := range slices.Repeat(workloads, 2) {
		if work.writes() {
			q := request{"r", "a"}
			if work.calls {
				q.id = "s"
			}
			_ = p.perform(context.Background(), &op{spec: spec{work: work, key: "k", request: q}, name: "warm", own: "warm"})
		}
	}
	must(locker.Close(context.Background()))
	must(p.pool.Close())
}

// open is a gate that lets all calls run.
type open struct{}

func (open) Pass(context.Context, simdb.Call) simdb.Fate { return simdb.Execute }

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// nowhere is a gorm.ConnPool that is never used.
type nowhere struct{ gorm.ConnPool }

// openOn returns base on another pool.
func openOn(dialect string, pool *sql.DB) *gorm.DB {
	db := base[dialect].Session(&gorm.Session{})
	db.ConnPool = pool
	db.Plugins = maps.Clone(db.Plugins)
	db.Statement = &gorm.Statement{DB: db, ConnPool: pool, Context: context.Background(), Clauses: base[dialect].Statement.Clauses}
	return db.Session(&gorm.Session{})
}

// flush is what a server does with a COMMIT that is visible already.
const flush = "FLUSH"

// A dbGate is the way of one process to the database.
type dbGate struct {
	w *world
	p *process
}

// Pass has the scheduler decide what becomes of a statement.
func (g dbGate) Pass(ctx context.Context, s simdb.Call) simdb.Fate {
	if of, ok := ctx.Value(strayKey{}).(*stray); ok {
		return of.sent(s)
	}
	c := &call{process: g.p, text: brief(s.Text), sql: s.Text, ctx: ctx, db: &s, cuts: true}
	c.op, c.actor = g.p.actor(ctx, g.p.background)
	c.conn = connOf(g.p, s)
	if s.Flush {
		c.actor, c.text, c.sql, c.cuts = g.p.name+".database", flush, flush, false
	}
	if a := g.w.history.transaction(c.conn); c.op == nil && a != nil && !s.Flush { // database/sql ends a transaction without the context
		c.op, c.actor = a.op, a.op.name
	}
	return simdb.Fate(g.w.gate.pass(c))
}

// connOf names the connection of a call.
func connOf(p *process, s simdb.Call) string { return p.name + "/" + fmt.Sprint(s.Conn) }

// brief is a statement as a story has it.
func brief(sql string) string {
	sql = strings.Join(strings.Fields(sql[:min(len(sql), 300)]), " ")
	if savepoint := strings.Index(sql, "SAVEPOINT sp"); savepoint >= 0 { // followed by a random number
		return sql[:savepoint] + "SAVEPOINT"
	}
	if len(sql) > 70 {
		sql = sql[:70] + "..."
	}
	return sql
}

// state is the newest version of each row that the oracle follows.
type state map[string]rowState

type rowState struct {
	version int64  // 1 if it has none
	names   string // of those who have changed it, if it has them
}

func (w *world) rows() state {
	s := make(state)
	for _, table := range tables {
		for _, r := range w.db.Rows(table) {
			switch {
			case r["no"] != nil:
				s[table+"/"+fmt.Sprint(r["no"])] = rowState{version: 1}
			case r["code"] != nil:
				s[table+"/"+fmt.Sprint(r["code"])] = rowState{version: 1}
			default:
				names, _ := r["names"].(string)
				s[table+"/"+fmt.Sprint(r["id"])] = rowState{r["version"].(int64), names}
			}
		}
	}
	return s
}
