package dbguard

import (
	"context"
	"database/sql"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/doctor"
	"github.com/belaygo/belay/internal/sqlconn"
)

// server is a database server, as one connection of a pool sees it.
type server struct {
	ctx     context.Context
	dialect dialect.Dialect
	pool    *sql.DB
	conn    *sql.Conn
	session dialect.Session
}

// withServer calls f with the server of db. It does nothing for an unknown kind of
// database, or for a pool that is not of database/sql.
func withServer(ctx context.Context, db *gorm.DB, f func(*server) error) error {
	d, ok := dialect.Of(db.Name())
	pool, err := db.DB()
	if !ok || err != nil {
		return nil //nolint:nilerr // there is nothing to ask
	}
	conn, err := pool.Conn(ctx)
	if err != nil {
		return err
	}
	err = sqlconn.Watch(conn, func() error {
		s := &server{ctx: ctx, dialect: d, pool: pool, conn: conn}
		if s.session, err = d.ReadSession(ctx, conn); err != nil {
			return err
		}
		return f(s)
	})
	_ = conn.Close()
	return err
}

// check finds a server that may be behind others, or may lose commits.
func (s *server) check() (found []doctor.Finding) {
	if s.session.Behind {
		found = append(found, doctor.DBBehind.Found("the server", "it may be behind others of its cluster when a transaction begins"))
	}
	if s.dialect.Loses == nil {
		return found
	}
	why, fix, err := s.dialect.Loses(s.ctx, s.conn)
	switch {
	case err != nil:
		found = append(found, doctor.DBDurability.Failed("the server", err))
	case why != "":
		found = append(found, doctor.DBDurability.Found("the server", "%s", why).Fixed("%s", fix))
	}
	return found
}
