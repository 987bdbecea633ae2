package promises_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testproc"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/redislock"
	"github.com/belaygo/belay/notify"
)

// realTTL is the ttl of locks in tests on a real Redis that wait for one to
// expire.
const realTTL = time.Second

// A task is what a child process does, handed over in its environment.
type task struct {
	DSN, Key string
	Redis    []string
	Unaware  bool   // does not learn that its lock is gone until it releases it
	No       string // of the order to insert
	Stock    int64  // to update, if not 0
	Dies     string // the step of a Call at which it kills itself
}

const taskVariable = "BELAY_GUARD_TASK"

// A word is a line that a child says: begun (before its write), written, ended.
type word struct {
	Said   string
	Result string         // of Do
	Events []notify.Event // that it published
}

// beChild does the task of a child process, if this is one.
func beChild() (child bool) {
	text, child := os.LookupEnv(taskVariable)
	if !child {
		return false
	}
	var t task
	err := json.Unmarshal([]byte(text), &t)
	if err == nil {
		err = t.do()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(1)
	}
	return true
}

func (t task) do() error {
	db, err := gorm.Open(mysql.Open(t.DSN), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		return err
	}
	ttl := realTTL
	if t.Unaware {
		ttl = time.Hour
	}
	engine, err := redislock.Open(&redis.UniversalOptions{Addrs: t.Redis}, redislock.Config{NoTracking: t.Unaware})
	if err != nil {
		return err
	}
	defer engine.Close(bg)
	locker, err := lock.New(engine, lock.Config{TTL: ttl})
	if err != nil {
		return err
	}
	defer locker.Close(bg)
	var events guardtest.Recorder
	g, err := guard.New(db, locker, guard.Config{Service: "child", Publisher: &events})
	if err != nil {
		return err
	}

	if t.Dies != "" {
		_, err := buying(db, t.dieAt).Run(bg, g, printed(t.No, "5"), 5)
		return fmt.Errorf("it has not died: %w", err)
	}
	lines := bufio.NewReader(os.Stdin)
	stand := func(said string) {
		say(word{Said: said})
		_, _ = lines.ReadString('\n')
	}
	err = g.Do(bg, t.Key, func(ctx context.Context, tx *gorm.DB) error {
		if t.Stock != 0 {
			return guard.Update(&Stock{ID: t.Stock}, func(s *Stock) error {
				stand("begun")
				return take(s)
			}).Run(ctx, tx)
		}
		stand("begun")
		if err := guard.Insert(&Order{No: t.No}).Run(ctx, tx); err != nil {
			return err
		}
		stand("written")
		return nil
	})
	say(word{Said: "ended", Result: string(guard.ResultOf(err)), Events: events.All()})
	return nil
}

func say(w word) {
	if err := json.NewEncoder(os.Stdout).Encode(w); err != nil {
		panic(err)
	}
}

// child is a process that does a task.
type child struct {
	*testproc.Process

	t *testing.T
}

func startChild(t *testing.T, what task) child {
	t.Helper()
	what.Redis = teststack.Redis(t)
	text, err := json.Marshal(what)
	wantNil(t, err)
	return child{testproc.Start(t, "the child", testproc.Self(taskVariable+"="+string(text))), t}
}

// await waits for a word.
func (c child) await(said string) word {
	c.t.Helper()
	return parse(c.Await(said, func(line string) bool { return parse(line).Said == said }))
}

// parse returns the word that a line is, if it is one.
func parse(line string) (w word) {
	_ = json.Unmarshal([]byte(line), &w)
	return w
}

// wantResult checks what became of the child's Do: its outcome and the one
// event it reported, or none.
func (c child) wantResult(result string, v notify.Verdict, o notify.Outcome) notify.Event {
	c.t.Helper()
	w := c.await("ended")
	if w.Result != result {
		c.t.Errorf("the child's outcome is %s, want %s", w.Result, result)
	}
	if v == "" {
		if len(w.Events) != 0 {
			c.t.Errorf("the child reported %+v, want nothing", w.Events)
		}
		return notify.Event{}
	}
	if len(w.Events) != 1 || w.Events[0].Verdict != v || w.Events[0].Outcome != o {
		c.t.Fatalf("the child reported %+v, want one event, %s, %s", w.Events, v, o)
	}
	return w.Events[0]
}
