package teststack

import "testing"

// A Database is a database server of one test's own, which may be killed. Its commits
// are durable.
type Database struct {
	own    *servers
	server string // its name in scripts/stack
	DSN    string // of its database, which is empty
}

// StartDatabase brings up a mariadb, mysql, mysql80 or postgres, and has it stopped when the test
// ends. It skips or fails where [MySQL], [MySQL9], [MySQL80] or [Postgres] do: where there is one,
// there may be another.
func StartDatabase(tb testing.TB, name, server string) *Database {
	tb.Helper()
	variable := map[string]string{"mariadb": "BELAY_MYSQL_DSN", "mysql": "BELAY_MYSQL9_DSN", "mysql80": "BELAY_MYSQL80_DSN", "postgres": "BELAY_POSTGRES_DSN"}[server]
	if server == "mariadb" {
		setting(tb, variable)
	} else {
		extra(tb, variable, server)
	}
	d := &Database{own: newStack(tb, name), server: server}
	d.own.Stack(tb, "up", server)
	d.DSN = d.own.settings(tb)[variable]
	return d
}

// Kill kills the server at once.
func (d *Database) Kill(tb testing.TB) {
	tb.Helper()
	d.own.Stack(tb, "kill", d.server)
}

// Start starts the server after Kill and waits until it answers.
func (d *Database) Start(tb testing.TB) {
	tb.Helper()
	d.own.Stack(tb, "start", d.server)
}

// Pause has the server stand still, with its connections open, until Resume. A postgres can't.
func (d *Database) Pause(tb testing.TB) {
	tb.Helper()
	d.own.Stack(tb, "pause", d.server)
}

// Resume has the server go on.
func (d *Database) Resume(tb testing.TB) {
	tb.Helper()
	d.own.Stack(tb, "resume", d.server)
}
