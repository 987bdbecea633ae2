package dialect

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestTold: a program names a family of its dialect, none that Belay knows, and the error lists all.
func TestTold(t *testing.T) {
	for _, tt := range []struct {
		dialect, name string
		want          Family
	}{
		{"postgres", "", ""},
		{"postgres", "CockroachDB", "CockroachDB"},
		{"postgres", "cockroachdb", "CockroachDB"},
		{"postgres", "citus", citus},
		{"postgres", "PgDog", "PgDog"},
		{"postgres", "sharded", shards},
		{"postgres", "other", likePostgres},
		{"mysql", "tidb", "TiDB"},
		{"mysql", "other", likeMySQL},
	} {
		if got, err := Told(tt.dialect, tt.name); got != tt.want || err != nil {
			t.Errorf("%s, %s: %q, %v", tt.dialect, tt.name, got, err)
		}
	}
	for _, name := range []string{"cockroach", "PostgreSQL", "MySQL", "TiDB", string(likePostgres)} {
		if _, err := Told("postgres", name); err == nil || !strings.Contains(err.Error(), "one of Citus, Cloudberry, CockroachDB, Greenplum,") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, of := range []string{"mysql", "sqlite"} {
		if _, err := Told(of, "CockroachDB"); err == nil {
			t.Errorf("CockroachDB on %s", of)
		}
	}
}

// TestToldProvesNoMore: of what a server shows and what the program says, an outcome is proven by
// that which proves less.
func TestToldProvesNoMore(t *testing.T) {
	for _, tt := range []struct{ shown, told, want Family }{
		{PostgreSQL, "", PostgreSQL},
		{PostgreSQL, "CockroachDB", "CockroachDB"},
		{PostgreSQL, "PgDog", "PgDog"},
		{MariaDB, "Vitess", "Vitess"},
		{"CockroachDB", "", "CockroachDB"},
		{"CockroachDB", "YugabyteDB", "YugabyteDB"},
		{"YugabyteDB", "CockroachDB", "YugabyteDB"},
		{"YugabyteDB", "Citus", "YugabyteDB"},
		{"YugabyteDB", "PgDog", "PgDog"},
		{"Vitess", "TiDB", "Vitess"},
		{likePostgres, "CockroachDB", likePostgres},
	} {
		s := Session{Family: tt.shown, Numbers: true, Sampled: true}.As(tt.told)
		if got := s.Proven(); got != tt.want {
			t.Errorf("%s, told %q: %s, want %s", tt.shown, tt.told, got, tt.want)
		}
		if s.Family != tt.shown { // whose statements it takes
			t.Errorf("%s, told %q: it is %s", tt.shown, tt.told, s.Family)
		}
		if known := !tt.want.Resembles(); s.Numbers != known || s.Sampled != known {
			t.Errorf("%s, told %q: numbers %v, sampled %v", tt.shown, tt.told, s.Numbers, s.Sampled)
		}
	}
	if retried := (&pgconn.PgError{Code: "40001"}); (Session{Family: "YugabyteDB"}).As("CockroachDB").Proven().NotCommitted(retried) {
		t.Error("an error proves what it does not prove on the server that is shown")
	}
}
