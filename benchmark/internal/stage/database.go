package stage

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/belaygo/belay/benchmark/internal/seed"
	"github.com/belaygo/belay/benchmark/internal/shop"
)

// openDatabase makes sure that the tables are seeded, keeps other runs away, and
// removes what an interrupted run has left.
func (s *Stage) openDatabase(ctx context.Context) error {
	dsn, err := seed.DSN(s.cfg.Servers.DSN, s.cfg.Rows)
	if err != nil {
		return err
	}
	if s.DB, err = shop.OpenPool(dsn, auditConnections); err != nil {
		return err
	}
	s.later(func(context.Context) error { return s.DB.Close() })
	if err := seed.Check(ctx, s.DB, s.cfg.Rows); err != nil {
		return err
	}
	if err := s.reserve(ctx); err != nil {
		return err
	}
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

// reserve takes the database for this run, as long as the connection lives.
func (s *Stage) reserve(ctx context.Context) error {
	conn, err := s.DB.Conn(ctx)
	if err != nil {
		return err
	}
	s.later(func(context.Context) error { return conn.Close() })
	var got sql.NullInt64
	name := seed.Database(s.cfg.Rows)
	if err := conn.QueryRowContext(ctx, "SELECT GET_LOCK(?, 0)", name).Scan(&got); err != nil {
		return err
	}
	if got.Int64 != 1 {
		return fmt.Errorf("another run is using the database %s", name)
	}
	return nil
}
