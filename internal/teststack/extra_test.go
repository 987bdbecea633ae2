package teststack_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/belaygo/belay/internal/teststack"
)

func TestExtraDatabasesAreWhatTheySay(t *testing.T) {
	for name, tt := range map[string]struct {
		dsn     func(testing.TB) string
		mariadb bool
	}{
		"mysql9":    {teststack.MySQL9, false},
		"mariadb11": {teststack.MariaDB11, true},
	} {
		t.Run(name, func(t *testing.T) {
			db := openDB(t, tt.dsn(t))
			var version string
			if err := db.QueryRow("SELECT VERSION()").Scan(&version); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(version, "MariaDB") != tt.mariadb {
				t.Errorf("version is %s", version)
			}
			var tables int
			if err := db.QueryRow("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()").Scan(&tables); err != nil || tables != 0 {
				t.Errorf("%d tables, error %v, want an empty database", tables, err)
			}
		})
	}
}

func TestPostgresDatabaseLivesAsLongAsItsTest(t *testing.T) {
	var dsn string
	t.Run("inner", func(t *testing.T) {
		dsn = teststack.Postgres(t)
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), "CREATE TABLE things (id INT PRIMARY KEY)"); err != nil {
			t.Fatal(err)
		}
		// Left open on purpose: that must not keep the database.
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
	})
	if dsn == "" {
		return // the inner test has said why
	}
	if conn, err := pgx.Connect(t.Context(), dsn); err == nil || !strings.Contains(err.Error(), "does not exist") {
		if conn != nil {
			conn.Close(t.Context())
		}
		t.Errorf("connect after the test = %v, want a database that does not exist", err)
	}
}

// TestPostgresDatabaseIsEmpty: whatever the tests before it left in theirs.
func TestPostgresDatabaseIsEmpty(t *testing.T) {
	for _, leave := range []string{
		"CREATE TABLE things (id SERIAL PRIMARY KEY); CREATE TYPE thing AS ENUM ('a')",
		"CREATE SCHEMA other; CREATE TABLE other.things (id INT)",
		"CREATE TABLE public.things (id INT); DROP SCHEMA public CASCADE",
		"DO $$BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = serializable', current_database()); END$$",
		"CREATE CAST (xml AS point) WITH INOUT",
		"CREATE FUNCTION f() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END'; CREATE EVENT TRIGGER thing ON ddl_command_end EXECUTE FUNCTION f()",
		"SELECT lo_create(0)",
	} {
		t.Run("", func(t *testing.T) {
			conn, err := pgx.Connect(t.Context(), teststack.Postgres(t))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close(context.Background()) })
			var tables, others int
			var isolation string
			err = conn.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM pg_class WHERE oid >= 16384),
				(SELECT count(*) FROM pg_namespace WHERE oid >= 16384 AND nspname <> 'public') +
				(SELECT count(*) FROM pg_proc WHERE oid >= 16384) + (SELECT count(*) FROM pg_type WHERE oid >= 16384) +
				(SELECT count(*) FROM pg_event_trigger) + (SELECT count(*) FROM pg_largeobject_metadata),
				current_setting('default_transaction_isolation')`).Scan(&tables, &others, &isolation)
			if err != nil || tables != 0 || others != 0 || isolation != "read committed" {
				t.Fatalf("the database has %d tables, %d other things, isolation %s, error %v", tables, others, isolation, err)
			}
			if _, err := conn.Exec(t.Context(), "CREATE TABLE mine (id INT); DROP TABLE mine"); err != nil {
				t.Errorf("create a table: %v", err)
			}
			if _, err := conn.Exec(t.Context(), leave); err != nil {
				t.Errorf("%s: %v", leave, err)
			}
		})
	}
}

// TestWithoutExtraServer: only "all" makes them required.
func TestWithoutExtraServer(t *testing.T) {
	for require, says := range map[string]string{"": "--- SKIP", "1": "--- SKIP", "all": "--- FAIL"} {
		t.Run("require="+require, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestExtraDatabasesAreWhatTheySay$/^mysql9$", "-test.v")
			cmd.Env = append(os.Environ(), "BELAY_MYSQL9_DSN=", "BELAY_REQUIRE_STACK="+require)
			out, _ := cmd.CombinedOutput()
			for _, want := range []string{says, "scripts/stack up --mysql"} {
				if !strings.Contains(string(out), want) {
					t.Errorf("output lacks %q:\n%s", want, out)
				}
			}
		})
	}
}
