package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"gorm.io/gorm"

	"github.com/belaygo/belay/cmd/internal/dsntest"
	"github.com/belaygo/belay/internal/message"
	"github.com/belaygo/belay/internal/sqldb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/relay"
)

func TestMain(m *testing.M) {
	teststack.Quiet()
	goleak.VerifyTestMain(m)
}

// A service has a database with messages, and a relay that accepts those of its open topics.
type service struct {
	t    *testing.T
	dsn  string
	db   *gorm.DB
	open atomic.Bool // whether the topic rejected is accepted
}

// each runs f for a service on each kind of database.
func each(t *testing.T, f func(t *testing.T, s *service)) {
	dsntest.Each(t, func(t *testing.T, dsn string) { f(t, newService(t, dsn)) })
}

func newService(t *testing.T, dsn string) *service {
	t.Helper()
	s := &service{t: t, dsn: dsn, db: dsntest.Open(t, dsn)}
	if err := relay.Migrate(t.Context(), s.db); err != nil {
		t.Fatal(err)
	}
	return s
}

// store stores messages. Those of the topic late were stored two hours ago.
func (s *service) store(rows ...message.Row) {
	s.t.Helper()
	base, err := message.Open(s.db, "test")
	if err == nil {
		err = base.InTx(s.t.Context(), func(c sqldb.Conn) error { return message.Insert(s.t.Context(), c, base.Dialect, rows) })
	}
	if err == nil {
		_, err = base.Exec(s.t.Context(), "UPDATE belay_message SET created_at = created_at - 7200000 WHERE topic = 'late'")
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// relay starts a relay, and waits until there are so many dead letters.
func (s *service) relay(dead int) *relay.Relay {
	s.t.Helper()
	r, err := relay.New(s.db, relay.Config{Logger: slog.New(slog.DiscardHandler), Routes: []relay.Route{
		{Topic: "late", Until: time.Hour, Handle: func(context.Context, relay.Message) error { return nil }},
		{Topic: "slow", Until: time.Hour, Handle: func(context.Context, relay.Message) error { return errors.New("not now") }},
		{Topic: "rejected", Until: time.Hour, Handle: func(context.Context, relay.Message) error {
			if s.open.Load() {
				return nil
			}
			return relay.ErrRejected
		}},
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = r.Close(context.Background()) })
	testwait.Until(s.t, "all dead letters are there", func() bool { return s.count().Dead == dead && s.count().Parked > dead })
	return r
}

func (s *service) count() relay.Backlog {
	s.t.Helper()
	b, err := relay.Count(s.t.Context(), s.db)
	if err != nil {
		s.t.Fatal(err)
	}
	return b
}

// run runs the command, and returns what it prints and its exit code.
func (s *service) run(args string) (string, int) {
	s.t.Helper()
	out, code, err := runOn(s.t, s.dsn, args)
	if err != nil {
		out += err.Error()
	}
	return out, code
}

func runOn(t *testing.T, dsn, args string) (string, int, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(t.Context(), strings.Fields(args), func(name string) string {
		return map[string]string{"BELAY_MESSAGES_DSN": dsn}[name]
	}, &out, io.Discard)
	return out.String(), exitCode(err), err
}

// want runs the command, and checks its exit code and parts of what it prints.
func (s *service) want(args string, code int, parts ...string) {
	s.t.Helper()
	out, got := s.run(args)
	if got != code {
		s.t.Errorf("%s: exit code %d, want %d: %s", args, got, code, out)
	}
	for _, part := range parts {
		if !strings.Contains(out, part) {
			s.t.Errorf("%s: no %q in %s", args, part, out)
		}
	}
}

// Dead letters are listed and settled. One that may have taken effect is sent again only on purpose.
func TestSettle(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *service) {
		s.want("list", 0, "no message waits for a decision")
		s.want("status", 0, "belay_message", "dead letters")
		s.store(
			message.Row{MessageID: "m-rejected", Key: "order:1", Topic: "rejected"},
			message.Row{MessageID: "m-behind", Key: "order:1", Topic: "rejected"},
			message.Row{MessageID: "m-drop", Key: "\x00é", Topic: "rejected"},
			message.Row{MessageID: "m-late", Topic: "late"},
			message.Row{MessageID: "m-late-2", Key: "order:2", Topic: "late"},
			message.Row{MessageID: "m-slow", Key: "order:3", Topic: "slow"},
		)
		s.relay(4)

		out, code := s.run("list -json")
		var rows []row
		if err := json.Unmarshal([]byte(out), &rows); err != nil || code != 0 || len(rows) != 4 {
			t.Fatalf("list: %d, %v: %s", code, err, out)
		}
		r := rows[0]
		if r.ID != "m-rejected" || r.State != "dead" || r.Topic != "rejected" || r.Key != "order:1" || r.Attempts != 1 || r.DeadAt == nil ||
			time.Since(*r.DeadAt).Abs() > time.Hour || !strings.Contains(r.Reason, "rejected") {
			t.Errorf("listed: %+v", r)
		}
		if rows[1].Key != `"\x00\u00e9"` || rows[2].State != "undecided" {
			t.Errorf("listed: %+v", rows)
		}
		s.want("list", 0, "ID", "m-rejected  dead", "m-late      undecided")
		s.want("-limit 1 list", 0, "m-rejected", "there are more")
		s.want("list -all", 0, "m-slow      parked")
		var slow time.Time
		if w, err := relay.Find(t.Context(), s.db, "m-slow"); err == nil {
			slow = w.Time
		}
		s.want("status -json", 0, `"dead": 4`, `"undecided": 2`, `"waiting": 6`, `"parked": 5`)

		s.want("retry m-slow", 0, "m-slow is sent again") // what is only parked needs no -undecided
		if w, err := relay.Find(t.Context(), s.db, "m-slow"); err != nil || !w.Time.Equal(slow) {
			t.Errorf("stored at %v, now %v, %v", slow, w.Time, err)
		}
		s.want("retry m-late m-gone", exitUndecided, "m-late", "-undecided", "m-gone", "somebody else has decided")
		s.want("retry m-behind", exitGone, "m-behind")
		if b := s.count(); b.Dead != 4 || b.Waiting != 6 {
			t.Fatalf("after that: %+v", b)
		}
		s.want("retry -undecided m-late", 0, "m-late is sent again")
		s.want("drop m-drop m-late-2", 0, "m-drop is dropped", "m-late-2 is dropped")
		s.open.Store(true)
		s.want("-json retry m-rejected m-gone", exitGone, `"id": "m-rejected"`, `"done": true`, `"done": false`)
		testwait.Until(t, "one message is left", func() bool { b := s.count(); return b.Waiting == 1 && b.Dead == 0 })
		s.want("drop m-drop", exitGone, "m-drop")
	})
}

// A relay gives a parked message up between the look at it and its retry: it may have taken effect.
func TestUndecidedSinceTheLook(t *testing.T) {
	each(t, func(t *testing.T, s *service) {
		s.store(message.Row{MessageID: "m-slow", Topic: "slow"}, message.Row{MessageID: "m-rejected", Key: "order:1", Topic: "rejected"})
		if err := s.relay(1).Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		seen, err := relay.Find(t.Context(), s.db, "m-slow")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.db.Exec("UPDATE belay_parked SET dead = 2 WHERE message_id = 'm-slow'").Error; err != nil {
			t.Fatal(err)
		}
		if err := (command{name: "retry"}).settleSeen(t.Context(), s.db, seen); !errors.Is(err, errUndecided) {
			t.Errorf("retried as it was seen: %v", err)
		}
		if err := (command{name: "retry", undecided: true}).settleSeen(t.Context(), s.db, seen); err != nil {
			t.Errorf("with -undecided: %v", err)
		}
		if w, err := relay.Find(t.Context(), s.db, "m-slow"); err != nil || w.Dead {
			t.Errorf("it is %+v, %v", w, err)
		}
	})
}

// An ID may begin with a dash, behind two.
func TestDashedID(t *testing.T) {
	s := newService(t, dsntest.SQLite(t))
	s.store(message.Row{MessageID: "-m", Topic: "rejected"}, message.Row{MessageID: "m-slow", Topic: "slow"})
	s.relay(1)
	s.want("drop -m", exitUsage, "--")
	s.want("drop -- -m", 0, "-m is dropped")
}

// A database that is not there is an error, and is not made.
func TestMistypedPath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "100% shop#1.db")
	for _, dsn := range []string{path, path + "?_pragma=busy_timeout(1000)", "file:" + strings.NewReplacer("%", "%25", "#", "%23").Replace(path)} {
		if _, code, err := runOn(t, dsn, "-dialect sqlite list"); code != exitFailed {
			t.Errorf("%s: %d, %v", dsn, code, err)
		}
		if made, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(made) != 0 {
			t.Fatalf("%s makes %q", dsn, made)
		}
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, code, err := runOn(t, path, "list"); code != exitFailed || !strings.Contains(err.Error(), "relay.Migrate") {
		t.Errorf("an empty file: %d, %v", code, err)
	}
}

// A database without the tables is an error that names the cure.
func TestNoTables(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dsn := "file:" + path
	for _, args := range []string{"list", "list -all", "status", "retry m", "drop m"} {
		if _, code, err := runOn(t, dsn, args); code != exitFailed || !strings.Contains(err.Error(), "relay.Migrate") {
			t.Errorf("%s: %d, %v", args, code, err)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, args := range []string{
		"", "show", "retry", "drop", "list m", "status m", "-undecided drop m", "-limit 0 list", "-limit x list", "-limit 9223372036854775807 list", "-limit 1000001 list", "-dialect oracle list", "list -never",
	} {
		if _, code, err := runOn(t, "file:"+filepath.Join(t.TempDir(), "shop.db"), args); code != exitUsage {
			t.Errorf("%q: %d, %v", args, code, err)
		}
	}
	if _, code, err := runOn(t, "", "list"); code != exitUsage || !strings.Contains(err.Error(), "BELAY_MESSAGES_DSN") {
		t.Errorf("without a DSN: %d, %v", code, err)
	}
	if _, code, _ := runOn(t, "", "-h"); code != 0 {
		t.Errorf("-h: %d", code)
	}
}

// No error has the password.
func TestPasswordIsNotPrinted(t *testing.T) {
	const secret = "s3cr3t"
	for _, dsn := range []string{
		"user:" + secret + "@tcp(127.0.0.1:1)/shop",
		"user:" + secret + "@nowhere",
		"user:" + secret + "@tcp(127.0.0.1:1/shop",
		"postgres://user:" + secret + "@127.0.0.1:1/shop?sslmode=disable",
		"postgres://user:" + secret + "@127.0.0.1:port/shop",
		"postgres://user:" + secret + "@127.0.0.1:1/shop?sslmode=never",
		"host=127.0.0.1 port=1 user=user password=" + secret + " dbname=shop sslmode=disable",
		"host=127.0.0.1 port=x user=user password=" + secret,
		"host=127.0.0.1 port=x user=user password = " + secret,
		"host=127.0.0.1 port=x user=user password=a password = " + secret,
	} {
		_, code, err := runOn(t, dsn, "list")
		if code == 0 || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %d, %v", dsn, code, err)
		}
	}
}
