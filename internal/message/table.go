package message

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strings"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/sqldb"
	"github.com/belaygo/belay/internal/sqlerr"
)

//go:embed schema
var schemas embed.FS

// keys are the tables, and the column of each that must be unique.
var keys = map[string]string{
	"belay_message": "message_id",
	"belay_lane":    "lane",
	"belay_relay":   "owner",
	"belay_parked":  "key_sum",
}

// Migrate creates the tables that do not exist.
func Migrate(ctx context.Context, db sqldb.DB) error {
	if err := db.Migrate(ctx, db.Schema(schemas)); err != nil {
		return fmt.Errorf("create tables of messages: %w", err)
	}
	return nil
}

// Check returns an error unless the tables are there, with all their columns and lanes, can be
// read, and have the indexes and the engine that they need.
func Check(ctx context.Context, db sqldb.DB) error {
	for _, query := range []string{
		`SELECT id, lane, message_id, key_sum, message_key, topic, headers, "body", created_at FROM belay_message WHERE 1 = 0`,
		"SELECT owner, beats, until_ms FROM belay_relay WHERE 1 = 0",
		"SELECT key_sum, lane, message_id, attempts, retry_at, dead, reason FROM belay_parked WHERE 1 = 0",
	} {
		if err := db.Query(ctx, query, nil, func(sqldb.Scan) error { return nil }); err != nil {
			return fmt.Errorf("check tables of messages: %w", Explain(err))
		}
	}
	lanes := 0
	const count = "SELECT COUNT(*) FROM belay_lane WHERE lane >= 0 AND lane < ? AND (owner = '' OR term >= 0 OR until_ms >= 0)"
	if err := db.QueryRow(ctx, count, []any{Lanes}, &lanes); err != nil {
		return fmt.Errorf("check tables of messages: %w", Explain(err))
	}
	if lanes < Lanes {
		return fmt.Errorf("table belay_lane has %d lanes in place of %d, so messages stay: call relay.Migrate, or run the INSERT of its schema", lanes, Lanes)
	}
	return db.Read(ctx, func(c sqldb.Conn) error {
		var errs []error
		for table, column := range keys {
			errs = append(errs, checkKey(ctx, catalogue.Source{Dialect: db.Name, Conn: c}, table, column))
		}
		return errors.Join(errs...)
	})
}

// checkKey returns an error unless the column is unique, and the table takes part in transactions.
func checkKey(ctx context.Context, in catalogue.Source, table, column string) error {
	indexes, err := in.Indexes(ctx, table)
	if err != nil {
		return err
	}
	if !catalogue.IsUnique(indexes, []string{column}) {
		return fmt.Errorf("table %s has no unique index on (%s) alone%s", table, column, catalogue.Unusable(indexes))
	}
	facts, err := in.Facts(ctx, table)
	if err != nil {
		return err
	}
	if !facts.Transactional {
		return fmt.Errorf("the engine of table %s has no transactions: ALTER TABLE %s ENGINE = InnoDB", table, table)
	}
	return nil
}

// Explain adds to the error of a database that has no tables of messages how to create them. It
// returns other errors, and nil, as they are.
func Explain(err error) error {
	switch {
	case sqlerr.IsMySQL(err, 1146), sqlerr.IsPostgres(err, "42P01"):
	case sqlerr.IsSQLite(err, 1) && strings.Contains(err.Error(), "no such table"):
	default:
		return err
	}
	for table := range keys {
		if strings.Contains(err.Error(), table) {
			return fmt.Errorf("the tables of messages are missing: call relay.Migrate, or set Messages in belay.Config: %w", err)
		}
	}
	return err
}

// Open returns the database below db, which must be no transaction. what begins the errors.
func Open(db *gorm.DB, what string) (sqldb.DB, error) {
	if db == nil || db.Config == nil || db.Dialector == nil {
		return sqldb.DB{}, fmt.Errorf("%s: db is missing", what)
	}
	d, ok := sqldb.Of(db.Name())
	if !ok {
		return sqldb.DB{}, fmt.Errorf("%s: db is %q; messages work on mysql, postgres and sqlite", what, db.Name())
	}
	if db.Statement != nil {
		if _, ok := db.Statement.ConnPool.(gorm.TxCommitter); ok {
			return sqldb.DB{}, fmt.Errorf("%s: db is a transaction; give the *gorm.DB that began it", what)
		}
	}
	pool, err := db.DB()
	if err != nil {
		return sqldb.DB{}, fmt.Errorf("%s: db has no connection pool: %w", what, err)
	}
	return sqldb.New(pool, d), nil
}
