package stage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/belaygo/belay/benchmark/internal/shop"
)

// openDatabase makes sure that the tables are seeded, keeps other runs away, and
// removes what an interrupted run has left.
func (s *Stage) openDatabase(ctx context.Context) error {
	dsn, err := shop.DSN(s.cfg.Servers.DSN, s.cfg.Rows)
	if err != nil {
		return err
	}
	if s.DB, err = shop.OpenPool(dsn, auditConnections); err != nil {
		return err
	}
	s.later(func(context.Context) error { return s.DB.Close() })
	if err := shop.CheckSeeded(ctx, s.DB, s.cfg.Rows); err != nil {
		return err
	}
	release, err := Reserve(ctx, s.DB, s.cfg.Rows)
	if err != nil {
		return err
	}
	s.later(release)
	if err := s.prepareEvents(ctx); err != nil {
		return err
	}
	db, err := shop.OpenGorm(s.DB)
	if err != nil {
		return err
	}
	s.later(func(ctx context.Context) error { return shop.CleanUp(ctx, db, s.cfg.Rows) })
	return shop.CleanUp(ctx, db, s.cfg.Rows)
}

// Reserve takes the seeded tables for one run, until release is called or db is
// closed. It keeps a connection of db.
func Reserve(ctx context.Context, db *sql.DB, rows int64) (release func(context.Context) error, err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	name := shop.Database(rows)
	var got sql.NullInt64
	if err := conn.QueryRowContext(ctx, "SELECT GET_LOCK(?, 0)", name).Scan(&got); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if got.Int64 != 1 {
		return nil, errors.Join(fmt.Errorf("another run is using the database %s", name), conn.Close())
	}
	return func(ctx context.Context) error {
		_, err := conn.ExecContext(ctx, "DO RELEASE_LOCK(?)", name)
		return errors.Join(err, conn.Close())
	}, nil
}
