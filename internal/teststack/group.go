package teststack

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// A MySQLGroup is a group of three MySQL servers. Its members may be killed and paused, so
// it is for one test at a time. It is whole again when the test ends.
type MySQLGroup struct {
	servers *servers
	DSNs    []string // of an empty database, which all members have
}

// Group returns a group in which one member takes writes. It is an extra server, as in
// [MySQL9]. BELAY_STACK must name the stack that has it.
func Group(tb testing.TB) *MySQLGroup {
	tb.Helper()
	return newGroup(tb, "single")
}

// MultiPrimaryGroup returns a group in which all members take writes, as [Group] does.
func MultiPrimaryGroup(tb testing.TB) *MySQLGroup {
	tb.Helper()
	return newGroup(tb, "multi")
}

func newGroup(tb testing.TB, mode string) *MySQLGroup {
	tb.Helper()
	const name = "BELAY_GROUP_DSNS"
	g := &MySQLGroup{DSNs: strings.Fields(extra(tb, name, "group"))}
	g.servers = &servers{env: append(os.Environ(), "BELAY_GROUP_MODE="+mode)}
	g.servers.Stack(tb, "up", "group") // heals it and chooses the mode
	made := "belay_" + randomName()
	for i, dsn := range g.DSNs {
		config := parseDSN(tb, name, dsn)
		config.DBName = made
		g.DSNs[i] = config.FormatDSN()
	}
	g.execute(tb, "CREATE DATABASE "+made)
	tb.Cleanup(func() {
		g.Heal(tb)
		g.execute(tb, "DROP DATABASE "+made)
	})
	return g
}

// execute runs a statement on the primary.
func (g *MySQLGroup) execute(tb testing.TB, statement string) {
	tb.Helper()
	execute(tb, parseDSN(tb, "BELAY_GROUP_DSNS", g.DSNs[g.Primary(tb)]), statement)
}

// Primary returns the first member that takes writes. It waits until there is one.
func (g *MySQLGroup) Primary(tb testing.TB) int {
	tb.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(2 * limit); time.Now().Before(deadline); <-tick.C {
		for i := range g.DSNs {
			if g.isPrimary(tb, i) {
				return i
			}
		}
	}
	tb.Fatal("no member of the group takes writes")
	return -1
}

// isPrimary reports whether a member says that it takes writes. One that does not answer
// does not.
func (g *MySQLGroup) isPrimary(tb testing.TB, i int) bool {
	tb.Helper()
	return g.ask(tb, i, `SELECT COUNT(*) FROM performance_schema.replication_group_members
		WHERE member_id = @@server_uuid AND member_state = 'ONLINE' AND member_role = 'PRIMARY' AND NOT @@super_read_only`) == "1"
}

// State returns the state of a member, as it says itself; none if it does not answer.
func (g *MySQLGroup) State(tb testing.TB, i int) string {
	tb.Helper()
	return g.ask(tb, i, "SELECT member_state FROM performance_schema.replication_group_members WHERE member_id = @@server_uuid")
}

// Join lets a member that has left the group come back, and does not wait for that.
func (g *MySQLGroup) Join(tb testing.TB, i int) {
	tb.Helper()
	config := parseDSN(tb, "BELAY_GROUP_DSNS", g.DSNs[i])
	execute(tb, config, fmt.Sprintf("START GROUP_REPLICATION USER = '%s', PASSWORD = '%s'", config.User, config.Passwd))
}

// ask returns the one value that a member answers with; none if it does not answer.
func (g *MySQLGroup) ask(tb testing.TB, i int, query string) (value string) {
	tb.Helper()
	config := parseDSN(tb, "BELAY_GROUP_DSNS", g.DSNs[i])
	config.DBName = ""
	connector, err := mysql.NewConnector(config)
	if err != nil {
		tb.Fatal("BELAY_GROUP_DSNS: ", err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = db.QueryRowContext(ctx, query).Scan(&value)
	return value
}

// Kill kills a member at once.
func (g *MySQLGroup) Kill(tb testing.TB, i int) { tb.Helper(); g.node(tb, "kill", i) }

// Pause stops a member, whose connections stay open.
func (g *MySQLGroup) Pause(tb testing.TB, i int) { tb.Helper(); g.node(tb, "pause", i) }

// Resume lets a paused member go on. If the others have put it out, it does not come back
// by itself.
func (g *MySQLGroup) Resume(tb testing.TB, i int) { tb.Helper(); g.node(tb, "resume", i) }

// Start starts a dead member, or takes back one that was put out, and waits until all have it.
func (g *MySQLGroup) Start(tb testing.TB, i int) { tb.Helper(); g.node(tb, "start", i) }

func (g *MySQLGroup) node(tb testing.TB, command string, i int) {
	tb.Helper()
	g.servers.Stack(tb, command, "group-"+strconv.Itoa(i+1))
}

// Heal brings back all members.
func (g *MySQLGroup) Heal(tb testing.TB) { tb.Helper(); g.servers.Stack(tb, "heal") }
