package stage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/belaygo/belay/benchmark/internal/shop"
)

// OpenTables opens n connections to the seeded tables for one run. It checks that
// they are complete, keeps other runs away, and removes the orders that runs add,
// now and at the end.
func OpenTables(ctx context.Context, c *shop.Closers, dsn string, rows int64, n int) (*sql.DB, error) {
	db, err := shop.OpenPool(dsn, shop.Database(rows), n)
	if err != nil {
		return nil, err
	}
	c.Later(func(context.Context) error { return db.Close() })
	if err := shop.CheckSeeded(ctx, db, rows); err != nil {
		return nil, err
	}
	release, err := Reserve(ctx, db, rows)
	if err != nil {
		return nil, err
	}
	c.Later(release)
	c.Later(func(ctx context.Context) error { return shop.CleanUp(ctx, db, rows) })
	return db, shop.CleanUp(ctx, db, rows)
}

func (s *Stage) openDatabase(ctx context.Context) (err error) {
	if s.DB, err = OpenTables(ctx, &s.Closers, s.cfg.Servers.DSN, s.cfg.Rows, auditConnections); err != nil {
		return err
	}
	return s.prepareEvents(ctx)
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
