package sqllock

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/belaygo/belay/internal/sqldb"
	"github.com/belaygo/belay/internal/sqlerr"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/switchlock"
)

// A source keeps its record in a row.
type source struct {
	db sqldb.DB
	dialect
	name string
}

// NewSource returns a source that keeps the named record in a row of the table belay_switch, which
// Migrate creates. Its errors match switchlock.ErrChanged, or those of package lock: see the package
// comment. Read returns an error if the server is read-only, because a replica may be behind its
// primary. The name has 1 to 64 bytes, and is the same
// in all processes that share locks. pool must connect to the primary of the business database,
// and only locks may use it. An Engine may share it. NewSource does not connect.
func NewSource(pool *sql.DB, d Dialect, name string) (switchlock.Source, error) {
	if pool == nil {
		return nil, errors.New("sqllock: pool is nil")
	}
	if name == "" || len(name) > 64 {
		return nil, fmt.Errorf("sqllock: the name %q of a record must have 1 to 64 bytes", name)
	}
	known, err := dialectOf(d)
	if err != nil {
		return nil, err
	}
	return &source{db: sqldb.New(pool, known.Dialect), dialect: known, name: name}, nil
}

// errReplica is returned when the server is read-only, as replicas are.
var errReplica = fmt.Errorf("%w, so its record may be old: connect to the primary", sqldb.ErrReadOnly)

// Read implements switchlock.Source.
func (s *source) Read(ctx context.Context) (r switchlock.Record, err error) {
	var lease, ttl, cross, readOnly int64
	err = s.db.Read(ctx, func(c sqldb.Conn) error {
		err := c.QueryRowContext(ctx, "SELECT epoch, from_engine, to_engine, settled, lease_us, ttl_us, cross_us, base, changed_by, "+
			s.readOnly+" FROM belay_switch WHERE name = ?", []byte(s.name)).
			Scan(&r.Epoch, &r.From, &r.To, &r.Settled, &lease, &ttl, &cross, &r.Base, &r.By, &readOnly)
		if errors.Is(err, sql.ErrNoRows) {
			err = c.QueryRowContext(ctx, "SELECT "+s.readOnly).Scan(&readOnly)
		}
		if err == nil && readOnly != 0 {
			return errReplica
		}
		return err
	})
	if err != nil {
		return switchlock.Record{}, recordError("read", err)
	}
	r.Lease, r.TTL, r.Cross = time.Duration(lease)*time.Microsecond, time.Duration(ttl)*time.Microsecond, time.Duration(cross)*time.Microsecond
	return r, nil
}

// Swap implements switchlock.Source.
func (s *source) Swap(ctx context.Context, old, next switchlock.Record) error {
	fields := []any{
		next.Epoch, []byte(next.From), []byte(next.To), flag(next.Settled),
		next.Lease.Microseconds(), next.TTL.Microseconds(), next.Cross.Microseconds(), next.Base, []byte(next.By), []byte(s.name),
	}
	statement := `UPDATE belay_switch SET epoch = ?, from_engine = ?, to_engine = ?, settled = ?,
	lease_us = ?, ttl_us = ?, cross_us = ?, base = ?, changed_by = ? WHERE name = ? AND epoch = ? AND settled = ?`
	if old.Epoch == 0 {
		statement = "INSERT INTO belay_switch (epoch, from_engine, to_engine, settled, lease_us, ttl_us, cross_us, base, changed_by, name) " +
			"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
	} else {
		fields = append(fields, old.Epoch, flag(old.Settled))
	}
	err := s.db.InTx(ctx, func(c sqldb.Conn) error {
		res, err := c.ExecContext(ctx, statement, fields...)
		if sqlerr.IsMySQL(err, 1062) || sqlerr.IsPostgres(err, "23505") || sqlerr.IsSQLite(err, 1555, 2067) {
			return switchlock.ErrChanged // a record is there
		}
		if err != nil {
			return err
		}
		n, err := res.RowsAffected()
		if err == nil && n == 0 {
			return switchlock.ErrChanged
		}
		return err
	})
	if err == nil || errors.Is(err, switchlock.ErrChanged) {
		return err
	}
	return recordError("write", err)
}

// recordError returns the error of a transaction on the record.
func recordError(what string, err error) error {
	switch {
	case errors.Is(err, sqldb.ErrNoConnection):
		err = unconnected(err)
	case errors.Is(err, driver.ErrBadConn): // what was not sent is not committed
		err = fmt.Errorf("%w: %w", lockengine.ErrNotSent, err)
	}
	return fmt.Errorf("sqllock: %s the record: %w", what, classify(err))
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
