package dbtx

import (
	"time"

	"github.com/belaygo/belay/internal/dbtx/dialect"
)

// A Server is the database server of a transaction, in one of its runs, as a session shows it. It
// is zero where that proves nothing: on SQLite, and on a server that only resembles MySQL or
// PostgreSQL.
type Server struct {
	// Name identifies the server by its address and ids. A restart does not change it.
	Name string

	run  string    // on PostgreSQL, another after a restart
	read time.Time // on MySQL and MariaDB, when the session was read
	id   uint64    // of the session
}

func serverOf(s dialect.Session) Server {
	if s.Proven().Resembles() || s.Server == "" {
		return Server{}
	}
	return Server{Name: s.Server, run: s.Run, read: s.Read, id: s.ID}
}

// Is reports whether s and o are one server in one run, as far as sessions show it: those of MySQL
// and MariaDB do not show a restart.
func (s Server) Is(o Server) bool { return s.Name == o.Name && s.run == o.run }

// After reports whether s was read after o. On MySQL and MariaDB the server may have been restarted
// in between. It is false on PostgreSQL.
func (s Server) After(o Server) bool { return s.read.After(o.read) }

// session returns what Dialect.Restarted needs.
func (s Server) session() dialect.Session {
	return dialect.Session{ID: s.id, Read: s.read, Run: s.run, Server: s.Name}
}
