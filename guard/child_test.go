package guard_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
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
	No       string // of the order to insert
	Stock    int64  // to update, if not 0
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
	engine, err := redislock.Open(&redis.ClusterOptions{Addrs: t.Redis}, redislock.Config{})
	if err != nil {
		return err
	}
	defer engine.Close(bg)
	locker, err := lock.New(engine, lock.Config{TTL: realTTL})
	if err != nil {
		return err
	}
	defer locker.Close(bg)
	var events guardtest.Recorder
	g, err := guard.New(db, locker, guard.Config{Service: "child", Publisher: &events})
	if err != nil {
		return err
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
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	exited chan struct{}
	log    bytes.Buffer

	mu    sync.Mutex
	words []word
}

func startChild(t *testing.T, what task) *child {
	t.Helper()
	what.Redis = teststack.Redis(t)
	text, err := json.Marshal(what)
	wantNil(t, err)
	c := &child{t: t, cmd: exec.Command(os.Args[0]), exited: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), taskVariable+"="+string(text))
	c.cmd.Stderr = &c.log
	c.stdin, err = c.cmd.StdinPipe()
	wantNil(t, err)
	stdout, err := c.cmd.StdoutPipe()
	wantNil(t, err)
	wantNil(t, c.cmd.Start())
	go func() {
		defer close(c.exited)
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			var w word
			if json.Unmarshal(lines.Bytes(), &w) == nil {
				c.mu.Lock()
				c.words = append(c.words, w)
				c.mu.Unlock()
			}
		}
		_ = c.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = c.cmd.Process.Signal(syscall.SIGCONT)
		_ = c.cmd.Process.Kill()
		<-c.exited
		if t.Failed() && c.log.Len() > 0 {
			t.Logf("child: %s", strings.TrimSpace(c.log.String()))
		}
	})
	return c
}

// await waits for a word.
func (c *child) await(said string) (found word) {
	c.t.Helper()
	testwait.Until(c.t, "the child says "+said, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, w := range c.words {
			if w.Said == said {
				found = w
				return true
			}
		}
		return false
	})
	return found
}

// proceed lets it go on from where it stands.
func (c *child) proceed() {
	c.t.Helper()
	_, err := io.WriteString(c.stdin, "\n")
	wantNil(c.t, err)
}

func (c *child) signal(s syscall.Signal) {
	c.t.Helper()
	wantNil(c.t, c.cmd.Process.Signal(s))
}

// wantResult checks what became of the child's Do: its outcome and the one
// event it reported, or none.
func (c *child) wantResult(result string, v notify.Verdict, o notify.Outcome) notify.Event {
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
