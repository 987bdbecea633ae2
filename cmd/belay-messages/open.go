package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx
	"gorm.io/gorm"
	_ "modernc.org/sqlite" // the driver sqlite

	"github.com/belaygo/belay/dbguard"
)

// requestTimeout is how long the database has for an answer.
const requestTimeout = 10 * time.Second

// errFailed is matched by the errors of the database.
var errFailed = errors.New("the database")

// open returns the database of a service.
func (c command) open(ctx context.Context) (db *gorm.DB, closePool func(), err error) {
	drivers := map[string]string{"mysql": "mysql", "postgres": "pgx", "sqlite": "sqlite"}
	dialect := c.dialect
	if dialect == "" {
		dialect = dialectOf(c.dsn)
	}
	driver, ok := drivers[dialect]
	if !ok {
		return nil, nil, fmt.Errorf("-dialect is %q, want mysql, postgres or sqlite: %w", dialect, errUsage)
	}
	dsn := c.dsn
	if dialect == "sqlite" {
		dsn = existing(dsn)
	}
	pool, err := sql.Open(driver, dsn)
	if err != nil { // err may have the password
		return nil, nil, fmt.Errorf("BELAY_MESSAGES_DSN is no data source name of %s: correct it, or set -dialect: %w", dialect, errUsage)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	db, err = dbguard.Open(ctx, pool)
	if err != nil {
		_ = pool.Close()
		return nil, nil, c.failed(err)
	}
	return db, func() { _ = pool.Close() }, nil
}

// existing returns a data source name of SQLite by which it does not make the file, if that is missing.
func existing(dsn string) string {
	path, query, found := strings.Cut(dsn, "?")
	if !strings.HasPrefix(path, "file:") {
		path = "file:" + strings.NewReplacer("%", "%25", "#", "%23").Replace(path)
	}
	switch {
	case strings.HasPrefix(query, "mode="), strings.Contains(query, "&mode="):
		return path + "?" + query
	case found && query != "":
		query += "&"
	}
	return path + "?" + query + "mode=rw"
}

// dialectOf returns the dialect of a data source name.
func dialectOf(dsn string) string {
	switch {
	case strings.HasPrefix(dsn, "postgres://"), strings.HasPrefix(dsn, "postgresql://"), strings.Contains(dsn, "host="):
		return "postgres"
	case strings.HasPrefix(dsn, "file:"), strings.HasSuffix(dsn, ".db"):
		return "sqlite"
	}
	return "mysql"
}

// failed returns an error of the database without the password.
func (c command) failed(err error) error {
	text := strings.ReplaceAll(err.Error(), c.dsn, "BELAY_MESSAGES_DSN")
	for _, password := range passwords(c.dsn) {
		text = strings.ReplaceAll(text, password, "***")
	}
	return fmt.Errorf("%w: %s", errFailed, text)
}

// passwords returns what may be a password in a data source name.
func passwords(dsn string) (all []string) {
	add := func(password string) {
		if password != "" {
			all = append(all, password)
		}
	}
	if u, err := url.Parse(dsn); err == nil {
		password, _ := u.User.Password()
		add(password)
		add(url.QueryEscape(password))
		add(u.Query().Get("password"))
	}
	if cfg, err := mysql.ParseDSN(dsn); err == nil {
		add(cfg.Passwd)
	}
	for field := range strings.FieldsSeq(dsn) { // of libpq
		if _, password, ok := strings.Cut(field, "password="); ok {
			add(strings.Trim(password, "'"))
		}
	}
	return all
}
