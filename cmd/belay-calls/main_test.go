package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"gorm.io/gorm"

	"github.com/belaygo/belay/cmd/internal/dsntest"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/once"
)

func TestMain(m *testing.M) {
	teststack.Quiet()
	goleak.VerifyTestMain(m)
}

var errNoAnswer = errors.New("no answer")

// A service pays by a Call, whose provider does not answer.
type service struct {
	t     *testing.T
	dsn   string
	db    *gorm.DB
	guard *guard.Guard
	calls int

	settles func() // is called once, before the next transaction of a request that was read
}

// Start implements guard.Observer.
func (s *service) Start(ctx context.Context, step guard.Step, _ string) (context.Context, func(error)) {
	if f := s.settles; f != nil && step == guard.StepDo {
		s.settles = nil
		f()
	}
	return ctx, func(error) {}
}

// Trace implements guard.Observer.
func (*service) Trace(context.Context) notify.Trace { return notify.Trace{} }

func each(t *testing.T, f func(s *service)) {
	dsntest.Each(t, func(t *testing.T, dsn string) {
		s := &service{t: t, dsn: dsn, db: dsntest.Open(t, dsn)}
		s.must(once.Migrate(t.Context(), s.db))
		s.must(once.MigrateCalls(t.Context(), s.db))
		locker, err := lock.New(memlock.New(), lock.Config{})
		s.must(err)
		s.guard, err = guard.New(s.db, locker, guard.Config{Service: "shop", Observer: s})
		s.must(err)
		defer func() { s.must(errors.Join(s.guard.Close(context.Background()), locker.Close(context.Background()))) }()
		f(s)
	})
}

func (s *service) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// pay serves the request of an order. Its answer is the provider's receipt, with no before it if that has
// refused.
func (s *service) pay(order string) (string, error) {
	c := guard.Call[string, string, string]{
		Name: "pay",
		Do: func(context.Context, string, string) (string, error) {
			s.calls++
			return "", errNoAnswer
		},
		Settle: func(_ context.Context, _ *gorm.DB, _ string, o guard.Outcome[string]) (string, error) {
			if o.Refused {
				return "no " + o.Value, nil
			}
			return o.Value, nil
		},
		Until: time.Hour,
	}
	r := once.Request{Operation: "pay", Scope: once.Anyone, ID: order, Print: once.PrintOf(1, []byte(order))}
	got, err := c.Run(s.t.Context(), s.guard, r, order)
	return got.Value, err
}

// undecided makes requests whose last call could begin an hour ago.
func (s *service) undecided(orders ...string) {
	s.t.Helper()
	for _, order := range orders {
		if _, err := s.pay(order); !errors.Is(err, guard.ErrPending) {
			s.t.Fatal(err)
		}
	}
	s.must(s.db.Exec("UPDATE belay_pending SET until_ms = until_ms - 7200000").Error)
}

// ids returns the IDs of listed requests.
func (s *service) ids(args string) (ids []string) {
	s.t.Helper()
	var rows []row
	out, code := s.run(args + " -json")
	if err := json.Unmarshal([]byte(out), &rows); err != nil || code != 0 {
		s.t.Fatalf("%s: %d, %v: %s", args, code, err, out)
	}
	for _, r := range rows {
		ids = append(ids, r.ID)
	}
	return ids
}

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
		return map[string]string{"BELAY_CALLS_DSN": dsn}[name]
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

// A decision is what the next repeat settles, without a call.
func TestDecide(t *testing.T) {
	t.Parallel()
	each(t, func(s *service) {
		s.want("list", 0, "no request waits for a decision")
		s.undecided("order-1", "order-2")
		ids := s.ids("list")
		if len(ids) != 2 {
			s.t.Fatalf("listed: %q", ids)
		}
		s.want("list", 0, "ID", ids[0]+"  undecided", ids[1], "once:pay:")
		s.want("list -limit 1", 0, "there are more")

		calls := s.calls
		s.want(`accept `+ids[0]+` -result "charge-7"`, 0, ids[0]+" has its result")
		s.want(`refuse -result "no-money" -json `+ids[1], 0, `"state": "answered"`)
		s.want(`accept -result "charge-8" `+ids[0], exitGone, `accepted with "charge-7"`, "-replace")
		s.want(`accept -replace -result "charge-9" `+ids[0], 0)
		s.want(`accept -replace -result "charge-9" `+ids[0], 0) // the same one
		s.want("list", 0, "no request waits")
		s.want("list -all", 0, "answered")
		got := make(map[string]bool)
		for _, order := range []string{"order-1", "order-2"} {
			answer, err := s.pay(order)
			s.must(err)
			got[answer] = true
		}
		if !got["charge-9"] || !got["no no-money"] || s.calls != calls {
			s.t.Errorf("the answers are %v after %d calls", got, s.calls-calls)
		}
		s.want(`accept -result null `+ids[0], exitGone, "not pending")
		s.want("list -all", 0, "no request is pending")
	})
}

// A result that Settle cannot read stays until another one replaces it. If that happens while a repeat
// begins to settle the old one, the next repeat settles the new one.
func TestReplace(t *testing.T) {
	t.Parallel()
	each(t, func(s *service) {
		s.undecided("order-1")
		id, calls := s.ids("list")[0], s.calls
		s.want("accept -result 7 "+id, 0)
		if _, err := s.pay("order-1"); !errors.Is(err, guard.ErrPending) || !errors.Is(err, guard.ErrAnswer) {
			s.t.Errorf("7 as a string: %v", err)
		}
		s.want(`accept -replace -result "wrong" `+id, 0)
		s.settles = func() { s.want(`refuse -replace -result "money" `+id, 0) }
		if _, err := s.pay("order-1"); !errors.Is(err, guard.ErrPending) {
			s.t.Errorf("the replaced result is settled: %v", err)
		}
		answer, err := s.pay("order-1")
		s.must(err)
		if answer != "no money" || s.calls != calls {
			s.t.Errorf("the answer is %q after %d calls", answer, s.calls-calls)
		}
	})
}

// Nobody decides a request for which a process calls, or may call.
func TestOpenRequestTakesNoDecision(t *testing.T) {
	t.Parallel()
	each(t, func(s *service) {
		if _, err := s.pay("order-1"); !errors.Is(err, guard.ErrPending) {
			s.t.Fatal(err)
		}
		s.want("list", 0, "no request waits")
		id := s.ids("list -all")[0]
		s.want("list -all", 0, id+"  open")
		s.want("accept -result null "+id, exitOpen, "repeat the request")
		s.must(s.db.Exec("UPDATE belay_pending SET lease_ms = until_ms, until_ms = 1").Error)
		s.want("list -all", 0, id+"  calling")
		s.want("refuse -replace -result null "+id, exitOpen)
	})
}

func TestUsage(t *testing.T) {
	dsn := dsntest.SQLite(t)
	for _, args := range []string{
		"", "show", "list x", "list -result 1", "list -replace", "accept", "accept x", "accept -result 1", "accept x y -result 1", "refuse x -result no-JSON", "refuse x -result", "list -limit 0", "list -limit 100001", "list -dialect oracle",
		"accept x -result \"" + strings.Repeat("x", maxResult) + "\"",
	} {
		if _, code, err := runOn(t, dsn, args); code != exitUsage {
			t.Errorf("%.40q: %d, %v", args, code, err)
		}
	}
	if _, code, err := runOn(t, "", "list"); code != exitUsage || !strings.Contains(err.Error(), "BELAY_CALLS_DSN") {
		t.Errorf("without a DSN: %d, %v", code, err)
	}
	if _, code, _ := runOn(t, "", "-h"); code != 0 {
		t.Errorf("-h: %d", code)
	}
}

// A database without the table is an error that names the cure, and one that is not there is not made. No
// error has the password.
func TestWrongDatabase(t *testing.T) {
	const secret = "s3cr3t"
	path := filepath.Join(t.TempDir(), "shop.db")
	for _, dsn := range []string{"file:" + path, "user:" + secret + "@tcp(127.0.0.1:1)/shop", "host=127.0.0.1 port=1 user=user password=" + secret + " dbname=shop sslmode=disable"} {
		if _, code, err := runOn(t, dsn, "list"); code != exitFailed || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %d, %v", dsn, code, err)
		}
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"list", "list -all", "accept x -result 1"} {
		if _, code, err := runOn(t, path, args); code != exitFailed || !strings.Contains(err.Error(), "once.MigrateCalls") {
			t.Errorf("%s: %d, %v", args, code, err)
		}
	}
}
