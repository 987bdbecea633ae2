package relay_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/message"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/testproc"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/internal/wait"
	"github.com/belaygo/belay/relay"
)

// Variables of a relay in a process of its own.
const (
	childDSN  = "BELAY_TEST_RELAY_DSN"
	childKind = "BELAY_TEST_RELAY_KIND"
	childFile = "BELAY_TEST_RELAY_FILE" // gets a line for each message that is sent
	childDies = "BELAY_TEST_RELAY_DIES" // the id of the message after which it kills itself
	childSlow = "BELAY_TEST_RELAY_SLOW" // how long a call takes
	childBad  = "BELAY_TEST_RELAY_BAD"  // the id of a message that is not accepted
	childStop = "BELAY_TEST_RELAY_STOP" // the beginning of the statement after which it is paused
)

func TestMain(m *testing.M) {
	if os.Getenv(childDSN) != "" {
		child()
		return
	}
	teststack.Quiet()
	goleak.VerifyTestMain(m)
}

// child relays until its standard input ends.
func child() {
	db, err := openKind(os.Getenv(childKind), os.Getenv(childDSN), os.Getenv(childStop))
	if err != nil {
		panic(err)
	}
	file, err := os.OpenFile(os.Getenv(childFile), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		panic(err)
	}
	slow, _ := time.ParseDuration(os.Getenv(childSlow))
	r, err := relay.New(db, to(publish(func(m relay.Message) error {
		_ = wait.Sleep(bg, slow, nil)
		if m.ID == os.Getenv(childBad) {
			return errors.New("no")
		}
		if _, err := fmt.Fprintln(file, m.ID); err != nil {
			return err
		}
		if m.ID == os.Getenv(childDies) {
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		return nil
	})))
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(os.Stdout, "relays")
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := r.Close(bg); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// A place is a database that processes share, and the file in which they note what they send.
type place struct {
	db              *gorm.DB
	kind, dsn, file string
}

// eachPlace runs f on MariaDB and PostgreSQL, with the tables.
func eachPlace(t *testing.T, f func(t *testing.T, p place)) {
	t.Helper()
	for kind, dsn := range map[string]func(testing.TB) string{"mysql": teststack.MySQL, "postgres": teststack.Postgres} {
		t.Run(kind, func(t *testing.T) {
			p := place{kind: kind, dsn: dsn(t), file: t.TempDir() + "/sent"}
			if kind == "mysql" {
				p.db = migrated(t, testdb.OpenMySQL(t, p.dsn))
			} else {
				p.db = migrated(t, testdb.OpenPostgres(t, p.dsn))
			}
			if err := os.WriteFile(p.file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			f(t, p)
		})
	}
}

// relay starts a relay in a process of its own.
func (p place) relay(tb testing.TB, env ...string) *testproc.Process {
	tb.Helper()
	process := p.begin(tb, env...)
	process.Await("a relay", func(line string) bool { return line == "relays" })
	return process
}

// begin is relay for one that may be paused at once.
func (p place) begin(tb testing.TB, env ...string) *testproc.Process {
	tb.Helper()
	return testproc.Start(tb, "relay", testproc.Self(append(env, childDSN+"="+p.dsn, childKind+"="+p.kind, childFile+"="+p.file)...))
}

// sent returns the ids in the order in which they were sent.
func (p place) sent(tb testing.TB) []string {
	tb.Helper()
	text, err := os.ReadFile(p.file)
	if err != nil {
		tb.Fatal(err)
	}
	return strings.Fields(string(text))
}

// first returns the ids without those that have occurred before.
func first(ids []string) (list []string) {
	seen := make(map[string]bool, len(ids))
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			list = append(list, id)
		}
	}
	return list
}

// A relay that dies between sending and deleting a message sends it twice at most, under one id.
func TestKilledBeforeDelete(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, p place) {
		store(t, p.db, rowsOf("a", 5)...)
		died := p.relay(t, childDies+"=a/2")
		<-died.Exited()
		if !died.WasKilled() {
			t.Fatal("the relay lives")
		}
		if n := count(t, p.db, "belay_message"); n != 5 {
			t.Logf("%d messages are left", n)
		}
		p.relay(t)
		emptied(t, p.db)
		sent := p.sent(t)
		if got := first(sent); !slices.Equal(got, idsOf("a", 5)) {
			t.Errorf("sent: %v", sent)
		}
		for _, id := range idsOf("a", 5) {
			if n := times(sent, id); n > 2 || id > "a/2" && n != 1 {
				t.Errorf("%s was sent %d times", id, n)
			}
		}
	})
}

func times(ids []string, id string) (n int) {
	for _, one := range ids {
		if one == id {
			n++
		}
	}
	return n
}

// A relay that is paused for longer than its lease sends none of the rows in its hands when it
// goes on, but the one that was under way.
func TestPausedPastItsLease(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, p place) {
		const n = 200
		paused := p.relay(t, childSlow+"=20ms")
		store(t, p.db, rowsOf("a", n)...)
		testwait.Until(t, "it sends", func() bool { return len(p.sent(t)) > 3 })
		paused.Signal(syscall.SIGSTOP)
		before := len(p.sent(t))
		p.relay(t, childSlow+"=20ms")
		testwait.Until(t, "the other relay sends", func() bool { return len(p.sent(t)) > before+20 })
		paused.Signal(syscall.SIGCONT)
		emptied(t, p.db)
		paused.CloseStdin()
		<-paused.Exited()
		sent := p.sent(t)
		if got := first(sent); !slices.Equal(got, idsOf("a", n)) {
			t.Errorf("sent: %v", sent)
		}
		if again := len(sent) - n; again > before+2 {
			t.Errorf("%d messages were sent again, and %d were sent before the pause", again, before)
		}
	})
}

// 10,000 messages of 100 keys through three relays that are paused and killed in turn: all
// arrive, and the first deliveries of a key are in its order.
func TestRelaysAreStoppedInTurn(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, p place) {
		const keys, each = 100, 100
		stored := make(chan struct{})
		go func() {
			defer close(stored)
			for n := range each {
				rows := make([]message.Row, keys)
				for k := range rows {
					rows[k] = row(fmt.Sprintf("item:%d", k), n)
				}
				store(t, p.db, rows...)
			}
		}()
		relays := make([]*testproc.Process, 3)
		for n := range relays {
			relays[n] = p.relay(t, childSlow+"=20ms")
		}
		<-stored
		stops := 0
		for turn := 0; count(t, p.db, "belay_message") > 0; turn++ {
			n := turn % len(relays)
			before := len(p.sent(t))
			relays[n].Signal(syscall.SIGSTOP)
			testwait.Until(t, "its lanes are taken", func() bool {
				return count(t, p.db, "belay_message") == 0 || len(p.sent(t)) > before+500
			})
			stops++
			if turn%2 == 0 {
				relays[n].Signal(syscall.SIGCONT)
				continue
			}
			relays[n].Kill()
			relays[n] = p.relay(t, childSlow+"=20ms")
		}
		sent := p.sent(t)
		for k := range keys {
			key := fmt.Sprintf("item:%d", k)
			if got := first(of(sent, key)); !slices.Equal(got, idsOf(key, each)) {
				t.Errorf("key %s: %v", key, of(sent, key))
			}
		}
		t.Logf("%d messages, %d stops, %d sent again", len(first(sent)), stops, len(sent)-len(first(sent)))
	})
}
