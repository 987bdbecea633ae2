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
