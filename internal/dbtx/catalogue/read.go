package catalogue

import (
	"context"
	"database/sql"
	"errors"
	"regexp"
	"strconv"
	"strings"
)

// Parts of the catalogues' queries. @name is a table, and @schema its schema, or "".
const (
	mysqlSchema   = "COALESCE(NULLIF(@schema, ''), DATABASE())"
	postgresTable = "to_regclass(CASE @schema WHEN '' THEN '' ELSE quote_ident(@schema) || '.' END || quote_ident(@name))"
)

// A Conn is a connection or a pool: a *sql.Conn, a *sql.Tx, a *sql.DB.
type Conn interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// A Source is a database whose catalogue is read.
type Source struct {
	Dialect string // by its name in dialect.Of
	Conn    Conn
}

// read calls scan for each row of the result of the dialect's query for a table.
func (s Source) read(ctx context.Context, queries map[string]string, table string, scan func(*sql.Rows) error) error {
	return s.query(ctx, queries[s.Dialect], nameOf(table), scan)
}

// query calls scan for each row of the result of a query.
func (s Source) query(ctx context.Context, query string, values map[string]string, scan func(*sql.Rows) error) (err error) {
	query, args := bind(s.Dialect, query, values)
	rows, err := s.Conn.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// mark is the name of a value in a query.
var mark = regexp.MustCompile(`@[a-z]+`)

// bind puts a parameter of the dialect in the place of each name in a query.
func bind(dialect, query string, values map[string]string) (bound string, args []any) {
	bound = mark.ReplaceAllStringFunc(query, func(name string) string {
		args = append(args, values[name[1:]])
		if dialect == "postgres" {
			return "$" + strconv.Itoa(len(args))
		}
		return "?"
	})
	return bound, args
}

// nameOf returns a table's name as the catalogues have it.
func nameOf(table string) map[string]string {
	schema, name, qualified := strings.Cut(table, ".")
	if !qualified {
		schema, name = "", table
	}
	return map[string]string{"schema": schema, "name": name}
}

// SchemaOf returns the schema of a table that is named without one, "" if there is no
// such table.
func (s Source) SchemaOf(ctx context.Context, table string) (string, error) {
	var schema sql.NullString
	err := s.read(ctx, schemaQueries, table, func(rows *sql.Rows) error { return rows.Scan(&schema) })
	return schema.String, err
}

var schemaQueries = map[string]string{
	"mysql": "SELECT DATABASE()",
	"postgres": `SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.oid = ` + postgresTable,
	"sqlite": "SELECT 'main'",
}
