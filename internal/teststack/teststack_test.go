package teststack_test

import (
	"database/sql"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/internal/teststack"
)

func TestRedisNodesListen(t *testing.T) {
	addrs := teststack.Redis(t)
	if len(addrs) != 6 {
		t.Fatalf("addresses = %q, want six", addrs)
	}
	for _, addr := range addrs {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
	}
}

func TestMySQLDatabaseLivesAsLongAsItsTest(t *testing.T) {
	var dsn string
	t.Run("inner", func(t *testing.T) {
		dsn = teststack.MySQL(t)
		db := openDB(t, dsn)
		if _, err := db.Exec("CREATE TABLE things (id INT PRIMARY KEY)"); err != nil {
			t.Fatal(err)
		}
		if other := teststack.MySQL(t); other == dsn {
			t.Errorf("two calls share the database of %d characters of DSN", len(dsn))
		}
	})
	if dsn == "" {
		return // the inner test has said why
	}
	if err := openDB(t, dsn).Ping(); err == nil || !strings.Contains(err.Error(), "Unknown database") {
		t.Errorf("ping after the test = %v, want an unknown database", err)
	}
}

func openDB(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// TestAMQPVirtualHost: it outlives its test for a while, and the next test takes it away.
func TestAMQPVirtualHost(t *testing.T) {
	var broker string
	t.Run("inner", func(t *testing.T) {
		broker = teststack.AMQP(t)
		conn, err := amqp.Dial(broker)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ch, err := conn.Channel()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ch.QueueDeclare("things", false, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
	})
	if broker == "" {
		return // the inner test has said why
	}
	address := teststack.AMQPAPI(t) + "/api/vhosts" + vhostPath(t, broker)
	status, body := request(t, http.MethodGet, address, "")
	if status != http.StatusOK || !strings.Contains(body, "done at ") {
		t.Fatalf("virtual host after its test: status %d, %s, want one that says since when it is done", status, body)
	}
	request(t, http.MethodPut, address, `{"description":"done at 1"}`)
	teststack.AMQP(t)
	if status, _ := request(t, http.MethodGet, address, ""); status != http.StatusNotFound {
		t.Errorf("virtual host of a test that ended long ago: status %d, want 404", status)
	}
}

func vhostPath(t *testing.T, broker string) string {
	t.Helper()
	u, err := url.Parse(broker)
	if err != nil {
		t.Fatal("the broker's URL is none")
	}
	return u.Path
}

func request(t *testing.T, method, address, body string) (status int, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func TestKeysDiffer(t *testing.T) {
	a, b := teststack.Key(t, "order:1"), teststack.Key(t, "order:1")
	if a == b {
		t.Errorf("two calls gave the same key %q", a)
	}
	for _, key := range []string{a, b} {
		if !strings.HasSuffix(key, "order:1") || strings.ContainsAny(key, "{}") {
			t.Errorf("key %q: want one that ends in order:1, without braces", key)
		}
	}
}

func TestWithoutStack(t *testing.T) {
	for _, tc := range []struct {
		require string
		passes  bool
		says    string
	}{
		{require: "", passes: true, says: "--- SKIP: TestRedisNodesListen"},
		{require: "1", passes: false, says: "--- FAIL: TestRedisNodesListen"},
	} {
		t.Run("require="+tc.require, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestRedisNodesListen$", "-test.v")
			cmd.Env = append(os.Environ(), "BELAY_REDIS_ADDRS=", "BELAY_REQUIRE_STACK="+tc.require)
			out, err := cmd.CombinedOutput()
			if passes := err == nil; passes != tc.passes {
				t.Errorf("passes = %v, want %v", passes, tc.passes)
			}
			for _, want := range []string{tc.says, "scripts/stack up"} {
				if !strings.Contains(string(out), want) {
					t.Errorf("output lacks %q:\n%s", want, out)
				}
			}
		})
	}
}
