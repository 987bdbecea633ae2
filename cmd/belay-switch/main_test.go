package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/belaygo/belay/cmd/internal/dsn"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/lock/sqllock"
	"github.com/belaygo/belay/lock/switchlock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newDatabase returns the DSN of one with the tables.
func newDatabase(t *testing.T) string {
	t.Helper()
	dsn := "file:" + filepath.Join(t.TempDir(), "switch.db") + "?_pragma=busy_timeout(10000)"
	pool, err := sql.Open("sqlite", dsn)
	if err == nil {
		err = errors.Join(sqllock.Migrate(t.Context(), pool, sqllock.SQLite), pool.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return dsn
}

func databaseOf(name string) dsn.Source {
	return dsn.Source{Variable: "BELAY_SWITCH_DSN", Name: name}
}

// service starts a service with the engines redis and sql, which is in the first.
func service(t *testing.T, dsn string) {
	t.Helper()
	source, closePool, err := open(databaseOf(dsn), "orders")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(closePool)
	e, err := switchlock.New(switchlock.Config{
		Source: source, Engines: map[string]lockengine.Engine{"redis": memlock.New(), "sql": memlock.New()},
		First: "redis", Lease: 200 * time.Millisecond, TTL: 200 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(context.Background()) })
	testwait.Until(t, "the engine has read the record", func() bool { // within a Lease, which is short
		_, err := e.Acquire(t.Context(), lockengine.Request{Key: "k", Owner: "me:1"}, time.Millisecond)
		return err == nil
	})
}

func belaySwitch(t *testing.T, dsn, args string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(t.Context(), append([]string{"-record", "orders"}, strings.Fields(args)...), func(name string) string {
		return map[string]string{"BELAY_SWITCH_DSN": dsn, "USER": "alice"}[name]
	}, &out, &out)
	return out.String(), err
}

// A database that is not there is an error, and is not made.
func TestMistypedPath(t *testing.T) {
	dir := t.TempDir()
	for _, args := range []string{"status", "to sql", "-dialect sqlite status"} {
		out, err := belaySwitch(t, filepath.Join(dir, "switch.db"), args)
		if err == nil || errors.Is(err, errUsage) || strings.Contains(err.Error(), "no record") {
			t.Errorf("%s: %q, %v", args, out, err)
		}
	}
	if made, err := os.ReadDir(dir); err != nil || len(made) != 0 {
		t.Errorf("it makes %v, %v", made, err)
	}
}

// No error has the password.
func TestPasswordIsNotPrinted(t *testing.T) {
	const secret = "s3cr3t"
	for _, dsn := range []string{
		"user:" + secret + "@tcp(127.0.0.1:1)/shop",
		"user:" + secret + "@tcp(127.0.0.1:1/shop",
		"postgres://user:" + secret + "@127.0.0.1:port/shop",
		"postgres://user:" + secret + "@127.0.0.1:1/shop?sslmode=never",
		"host=127.0.0.1 port=x user=user password=" + secret,
		"host=127.0.0.1 port=x user=user password = " + secret,
		"host=127.0.0.1 port=x user=user password=a password = " + secret,
	} {
		for _, args := range []string{"status", "to sql"} {
			if out, err := belaySwitch(t, dsn, args); err == nil || strings.Contains(out+err.Error(), secret) {
				t.Errorf("%s: %s: %q, %v", dsn, args, out, err)
			}
		}
	}
}

// An error keeps what it matches when its text changes.
func TestMaskedErrorMatches(t *testing.T) {
	err := databaseOf("user:switchlock@tcp(127.0.0.1:1)/shop").Mask(switchlock.ErrUnsettled)
	if !errors.Is(err, switchlock.ErrUnsettled) || err.Error() != "***: a switch is not over" {
		t.Errorf("masked: %v", err)
	}
}

// Locks move to another engine, and back.
func TestSwitch(t *testing.T) {
	dsn := newDatabase(t)
	for _, args := range []string{"status", "to sql"} { // a script must notice that the name is wrong
		if out, err := belaySwitch(t, dsn, args); err == nil || errors.Is(err, errUsage) || !strings.Contains(err.Error(), "no record") {
			t.Errorf("%s before: %q, %v", args, out, err)
		}
	}
	service(t, dsn)
	for _, step := range []struct{ args, want string }{
		{"status", "epoch 1: locks are kept in redis\n"},
		{"to redis", "epoch 1: locks are kept in redis\n"},
		{"to sql", "epoch 2: locks move from redis to sql; each process needs both for 1.4s (by alice)\nepoch 2: locks are kept in sql\n"},
		{"-by bob -gone-for 1h to redis", "epoch 3: locks move from sql to redis; each process needs both for 0s (by bob)\nepoch 3: locks are kept in redis\n"},
		{"-no-wait to sql", "epoch 4: locks move from redis to sql; each process needs both for 1.4s (by alice)\n"},
	} {
		if out, err := belaySwitch(t, dsn, step.args); err != nil || out != step.want {
			t.Errorf("%s: %q, %v, want %q", step.args, out, err, step.want)
		}
	}
	if out, err := belaySwitch(t, dsn, "to zk"); !errors.Is(err, switchlock.ErrUnsettled) {
		t.Errorf("to a third engine: %q, %v", out, err)
	}
}

func TestUsage(t *testing.T) {
	dsn := newDatabase(t)
	for args, dsn := range map[string]string{
		"status":                   "",
		"":                         dsn,
		"move sql":                 dsn,
		"to":                       dsn,
		"-record= status":          dsn,
		"-dialect oracle status":   dsn,
		"-gone-for yesterday to x": dsn,
		"-gone-for -1h to x":       dsn,
		"-by al\xffice to x":       dsn,
	} {
		if out, err := belaySwitch(t, dsn, args); !errors.Is(err, errUsage) {
			t.Errorf("%q: %q, %v", args, out, err)
		}
	}
}

// Whoever interrupts the command is not told that something is wrong with the switch.
func TestInterrupt(t *testing.T) {
	dsn := newDatabase(t)
	service(t, dsn)
	source, closePool, err := open(databaseOf(dsn), "orders")
	if err != nil {
		t.Fatal(err)
	}
	defer closePool()
	ctx, cancel := context.WithCancel(t.Context())
	err = command{args: []string{"to", "sql"}, goneFor: notGone}.to(ctx, source, onWrite(cancel))
	if err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("interrupted: %v", err)
	}
}

// An onWrite is called when something is written to it.
type onWrite func()

func (f onWrite) Write(b []byte) (int, error) {
	f()
	return len(b), nil
}

// A record whose times change moves no locks.
func TestRetimedRecord(t *testing.T) {
	r := switchlock.Record{Epoch: 2, From: "redis", To: "redis", Cross: 41 * time.Second}
	if got, want := describe(r), "epoch 2: locks stay in redis; there can be no switch for 41s, as the record changes"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
