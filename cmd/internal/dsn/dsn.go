// Package dsn opens the database that a command is given by a data source name in its environment.
// It creates no database, and keeps passwords out of errors.
package dsn

import (
	"database/sql"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx
	_ "modernc.org/sqlite"             // the driver sqlite
)

// A Source is a data source name, and the variable of the environment that has it.
type Source struct {
	Variable, Name string
	Dialect        string // mysql, postgres or sqlite; by default Name decides
}

// Open returns the pool of the database, and its dialect. It does not connect. A file of SQLite that
// is missing is an error of the first statement, and is not created.
func (s Source) Open() (pool *sql.DB, dialect string, err error) {
	drivers := map[string]string{"mysql": "mysql", "postgres": "pgx", "sqlite": "sqlite"}
	if dialect = s.Dialect; dialect == "" {
		dialect = dialectOf(s.Name)
	}
	driver, ok := drivers[dialect]
	if !ok {
		return nil, "", fmt.Errorf("-dialect is %q, want mysql, postgres or sqlite", dialect)
	}
	name := s.Name
	if dialect == "sqlite" {
		name = existing(name)
	}
	if pool, err = sql.Open(driver, name); err != nil { // err may have the password
		return nil, "", fmt.Errorf("%s is no data source name of %s: correct it, or set -dialect", s.Variable, dialect)
	}
	return pool, dialect, nil
}

// existing returns a data source name of SQLite by which it does not make the file, if that is missing.
func existing(name string) string {
	path, query, found := strings.Cut(name, "?")
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
func dialectOf(name string) string {
	switch {
	case strings.HasPrefix(name, "postgres://"), strings.HasPrefix(name, "postgresql://"), strings.Contains(name, "host="):
		return "postgres"
	case strings.HasPrefix(name, "file:"), strings.HasSuffix(name, ".db"):
		return "sqlite"
	}
	return "mysql"
}

// Mask returns an error that matches err, and whose text has neither the data source name nor its
// password. It is nil if err is nil.
func (s Source) Mask(err error) error {
	if err == nil {
		return nil
	}
	text := strings.ReplaceAll(err.Error(), s.Name, s.Variable)
	for _, password := range passwords(s.Name) {
		text = strings.ReplaceAll(text, password, "***")
	}
	if text == err.Error() {
		return err
	}
	return &masked{text, err}
}

// A masked error has another text than the one that it is made of.
type masked struct {
	text string
	err  error
}

func (m *masked) Error() string { return m.text }
func (m *masked) Unwrap() error { return m.err }

// keyword is a password in the form of libpq.
var keyword = regexp.MustCompile(`password\s*=\s*('[^']*'|\S+)`)

// passwords returns what may be a password in a data source name.
func passwords(name string) (all []string) {
	add := func(password string) {
		if password != "" {
			all = append(all, password)
		}
	}
	if u, err := url.Parse(name); err == nil {
		password, _ := u.User.Password()
		add(password)
		add(url.QueryEscape(password))
		add(u.Query().Get("password"))
	}
	if cfg, err := mysql.ParseDSN(name); err == nil {
		add(cfg.Passwd)
	}
	for _, m := range keyword.FindAllStringSubmatch(name, -1) {
		add(strings.Trim(m[1], "'"))
	}
	return all
}
