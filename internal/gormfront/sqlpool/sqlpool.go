// Package sqlpool opens a pool of database/sql as GORM's, by GORM's core and without a driver of
// GORM's: for programs that have none. What Belay itself writes by GORM works; migrations do
// not.
package sqlpool

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/callbacks"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
	"gorm.io/gorm/migrator"
	"gorm.io/gorm/schema"
)

// Open returns pool as GORM's. It asks the server what it is.
func Open(ctx context.Context, pool *sql.DB) (*gorm.DB, error) {
	if pool == nil {
		return nil, errors.New("dbguard: pool is nil")
	}
	name, err := nameOf(ctx, pool)
	if err != nil {
		return nil, err
	}
	return gorm.Open(dialector{name}, &gorm.Config{
		ConnPool: pool, SkipDefaultTransaction: true, DisableAutomaticPing: true,
		Logger: logger.Discard, // it shows the values of statements
	})
}

// nameOf returns the name by which GORM knows a kind of database.
func nameOf(ctx context.Context, pool *sql.DB) (string, error) {
	var version string
	err := pool.QueryRowContext(ctx, "SELECT version()").Scan(&version)
	if err != nil {
		if pool.QueryRowContext(ctx, "SELECT sqlite_version()").Scan(&version) == nil {
			return "sqlite", nil
		}
		return "", fmt.Errorf("dbguard: the database cannot be identified: check the address, the user and the password in its DSN: %w", err)
	}
	if version != "" && '0' <= version[0] && version[0] <= '9' {
		return "mysql", nil
	}
	return "postgres", nil
}

// A dialector is the little of a driver of GORM that Belay needs.
type dialector struct{ name string }

// Name implements gorm.Dialector.
func (d dialector) Name() string { return d.name }

// Initialize implements gorm.Dialector.
func (d dialector) Initialize(db *gorm.DB) error {
	config := &callbacks.Config{}
	if d.name != "mysql" {
		config = &callbacks.Config{
			CreateClauses:        []string{"INSERT", "VALUES", "ON CONFLICT", "RETURNING"},
			UpdateClauses:        []string{"UPDATE", "SET", "FROM", "WHERE", "RETURNING"},
			DeleteClauses:        []string{"DELETE", "FROM", "WHERE", "RETURNING"},
			LastInsertIDReversed: d.name == "sqlite",
		}
	}
	callbacks.RegisterDefaultCallbacks(db, config)
	return nil
}

// Migrator implements gorm.Dialector.
func (d dialector) Migrator(db *gorm.DB) gorm.Migrator {
	return migrator.Migrator{Config: migrator.Config{DB: db, Dialector: d}}
}

// DataTypeOf implements gorm.Dialector, for migrations.
func (dialector) DataTypeOf(f *schema.Field) string { return string(f.DataType) }

// DefaultValueOf implements gorm.Dialector.
func (d dialector) DefaultValueOf(*schema.Field) clause.Expression {
	if d.name == "sqlite" {
		return clause.Expr{SQL: "NULL"}
	}
	return clause.Expr{SQL: "DEFAULT"}
}

// BindVarTo implements gorm.Dialector.
func (d dialector) BindVarTo(w clause.Writer, stmt *gorm.Statement, _ any) {
	mark := "?"
	if d.name == "postgres" {
		mark = fmt.Sprintf("$%d", len(stmt.Vars))
	}
	_, _ = w.WriteString(mark)
}

// QuoteTo implements gorm.Dialector. A dot is between a table and its schema.
func (d dialector) QuoteTo(w clause.Writer, name string) {
	quote := `"`
	if d.name != "postgres" {
		quote = "`"
	}
	for i, part := range strings.Split(name, ".") {
		if i > 0 {
			_ = w.WriteByte('.')
		}
		_, _ = w.WriteString(quote + strings.ReplaceAll(part, quote, quote+quote) + quote)
	}
}

// Explain implements gorm.Dialector.
func (dialector) Explain(query string, vars ...any) string {
	return logger.ExplainSQL(query, nil, `'`, vars...)
}
