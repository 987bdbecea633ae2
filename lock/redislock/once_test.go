package redislock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/redislock"
)

var hold = lockengine.Request{Key: "k", Owner: "me:1"}

// requests are the methods of an engine, for tests that hold for each.
var requests = map[string]func(context.Context, redislock.Engine) error{
	"acquire": func(ctx context.Context, e redislock.Engine) error {
		_, err := e.Acquire(ctx, hold, ttl)
		return err
	},
	"renew": func(ctx context.Context, e redislock.Engine) error {
		return e.Renew(ctx, []lockengine.Request{hold}, ttl)[0]
	},
	"release": func(ctx context.Context, e redislock.Engine) error { return e.Release(ctx, hold) },
	"inspect": func(ctx context.Context, e redislock.Engine) error {
		_, err := e.Inspect(ctx, hold.Key)
		return err
	},
}

// granted are replies that say yes.
var granted = map[string]string{
	"acquire": "*3\r\n:1\r\n:1700000000\r\n:5\r\n",
	"renew":   ":1\r\n",
	"release": ":1\r\n",
	"inspect": "*2\r\n$4\r\nme:1\r\n:500\r\n",
}

// A script whose answer is lost is not sent again: it may have been executed.
func TestSentOnce(t *testing.T) {
	for name, request := range requests {
		t.Run(name, func(t *testing.T) {
			node := newNode(t)
			node.reply = func([]string) string { return hangUp }
			wantUnclear(t, request(t.Context(), open(t, node.addr)), "")
			wantSentOnce(t, node, name)
		})
	}
}

// wantSentOnce checks that a request was sent once, or at least once if it asks
// and changes nothing.
func wantSentOnce(tb testing.TB, n *node, request string) {
	tb.Helper()
	sent := n.count("evalsha") + n.count("eval")
	if sent == 0 || sent > 1 && request != "inspect" {
		tb.Errorf("the script was sent %d times, want once", sent)
	}
}

func TestDeadlineCutsHungRequest(t *testing.T) {
	for name, request := range requests {
		t.Run(name, func(t *testing.T) {
			node := newNode(t)
			node.reply = func([]string) string { return noAnswer }
			e := open(t, node.addr)
			if err := e.Ping(t.Context()); err != nil { // it has connections
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			wantUnclear(t, request(ctx, e), "")
			if deadline, _ := ctx.Deadline(); time.Now().Before(deadline) {
				t.Error("it returned before its deadline")
			}
			wantSentOnce(t, node, name)
		})
	}
}

// The socket notices a deadline before the context does. The Locker says what
// it was all the same.
func TestDeadlineOfAcquire(t *testing.T) {
	node := newNode(t)
	node.reply = func([]string) string { return noAnswer }
	l := newLocker(t, open(t, node.addr), lock.Config{RequestTimeout: 100 * time.Millisecond})
	for i := range 100 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		_, err := l.Acquire(ctx, fmt.Sprint("k", i))
		cancel()
		wantIs(t, err, context.DeadlineExceeded)
	}
}

// A cluster whose first node accepts connections and answers nothing.
func TestDeadlineWhileClusterIsUnknown(t *testing.T) {
	node := newNode(t)
	node.mute = true
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := open(t, node.addr).Acquire(ctx, hold, ttl)
	wantUnclear(t, err, "")
	if n := node.count("evalsha"); n != 0 {
		t.Errorf("the script was sent %d times", n)
	}
}

// A node that refuses a script has not executed it.
func TestRefusedScriptIsSentAgain(t *testing.T) {
	for name, request := range requests {
		for _, refusal := range []string{"NOSCRIPT No matching script.", "READONLY You can't write against a read only replica."} {
			if name == "renew" && refusal[0] == 'R' {
				continue // in a pipeline it comes back, and the watchdog asks again
			}
			t.Run(name+" "+refusal[:8], func(t *testing.T) {
				node := newNode(t)
				refused := false
				node.reply = func([]string) string {
					if !refused {
						refused = true
						return "-" + refusal + "\r\n"
					}
					return granted[name]
				}
				if err := request(t.Context(), open(t, node.addr)); err != nil {
					t.Error(err)
				}
				if n := node.count("evalsha") + node.count("eval"); n != 2 {
					t.Errorf("the script was sent %d times, want twice", n)
				}
			})
		}
	}
}

func TestMovedIsFollowed(t *testing.T) {
	for name, request := range requests {
		t.Run(name, func(t *testing.T) {
			before, after := newNode(t), newNode(t)
			before.reply = func([]string) string { return "-MOVED 7629 " + after.addr + "\r\n" }
			after.reply = func([]string) string { return granted[name] }
			// Options that forbid redirects are not taken.
			e, err := redislock.Open(&redis.UniversalOptions{IsClusterMode: true, Addrs: []string{before.addr}, MaxRedirects: -1}, redislock.Config{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = e.Close(context.Background()) })
			if err := request(t.Context(), e); err != nil {
				t.Error(err)
			}
			// The first node may be asked twice, as a refusal executes nothing.
			if before.count("evalsha") > 2 || after.count("evalsha") != 1 {
				t.Errorf("sent %d and %d times, want once to the second", before.count("evalsha"), after.count("evalsha"))
			}
		})
	}
}

func TestPlaceAfterMoved(t *testing.T) {
	before, after := newNode(t), newNode(t)
	before.reply = func([]string) string { return "-MOVED 7629 " + after.addr + "\r\n" }
	after.reply = func([]string) string { return granted["acquire"] }
	grant := acquire(t, open(t, before.addr), hold)
	if want := (lockengine.Place{Node: after.addr, Slot: 7629}); grant.Place != want {
		t.Errorf("place is %+v, want %+v", grant.Place, want)
	}
}

// The slot migrates: the other node is asked, and asked by ASKING first.
func TestAskIsFollowed(t *testing.T) {
	before, after := newNode(t), newNode(t)
	before.reply = func([]string) string { return "-ASK 7629 " + after.addr + "\r\n" }
	after.reply = func([]string) string { return granted["acquire"] }
	grant := acquire(t, open(t, before.addr), hold)
	if grant.Node != after.addr || after.count("asking") != 1 {
		t.Errorf("granted by %s after %d ASKING, want by %s after 1", grant.Node, after.count("asking"), after.addr)
	}
}

// The slot migrates, and the other node gives no answer, to ASKING neither: the script may have been
// executed, so it is not sent again.
func TestAskedNodeGivesNoAnswer(t *testing.T) {
	engines := map[string]func(addr string) (redislock.Engine, error){
		"open": func(addr string) (redislock.Engine, error) {
			return redislock.Open(&redis.UniversalOptions{Addrs: []string{addr}, IsClusterMode: true}, redislock.Config{})
		},
		"new": func(addr string) (redislock.Engine, error) {
			c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{addr}})
			t.Cleanup(func() { _ = c.Close() })
			return redislock.New(c, redislock.Config{NoTracking: true})
		},
	}
	asked := map[string]func(context.Context, redislock.Engine) error{
		"acquire": requests["acquire"],
		"acquire unless marked": func(ctx context.Context, e redislock.Engine) error {
			_, err := e.Acquire(ctx, unlessMarked(hold), ttl)
			return err
		},
		"renew":            requests["renew"],
		"release":          requests["release"],
		"release and mark": func(ctx context.Context, e redislock.Engine) error { return e.Release(ctx, marked(hold)) },
	}
	for client, engine := range engines {
		for name, request := range asked {
			t.Run(client+" "+name, func(t *testing.T) {
				before, after := newNode(t), newNode(t)
				ask := "-ASK 7629 " + after.addr + "\r\n"
				before.other = map[string]string{"get": ask, "set": ask}
				before.reply = func([]string) string { return ask }
				after.other = map[string]string{"asking": noAnswer, "set": noAnswer}
				after.reply = func([]string) string { return hangUp }
				e, err := engine(before.addr)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = e.Close(context.Background()) })
				wantIs(t, request(t.Context(), e), lockengine.ErrNoAnswer)
				wantSentOnce(t, after, name)
			})
		}
	}
}

func TestMalformedReplies(t *testing.T) {
	replies := []string{
		":7\r\n", ":-1\r\n", "+OK\r\n", "$-1\r\n", "*-1\r\n", "*0\r\n", "$1\r\n1\r\n", "_\r\n", "#t\r\n",
		"*1\r\n:1\r\n", "*3\r\n:1\r\n:1\r\n$1\r\nx\r\n", "*3\r\n:1\r\n$-1\r\n:1\r\n", "*3\r\n:2\r\n:1\r\n:1\r\n",
		"*3\r\n$1\r\n1\r\n:1\r\n:1\r\n", "*3\r\n:0\r\n:5\r\n:6\r\n", "*3\r\n:0\r\n$2\r\nme\r\n$1\r\nx\r\n",
		"*3\r\n:0\r\n$-1\r\n:6\r\n", "*2\r\n$2\r\nme\r\n$1\r\nx\r\n", "*2\r\n:1\r\n*0\r\n",
		"-ERR something\r\n", "-\r\n", "?\r\n", "$9\r\nx\r\n", "\r\n", "HTTP/1.1 400 Bad Request\r\n\r\n",
	}
	for name, request := range requests {
		for _, reply := range replies {
			t.Run(fmt.Sprintf("%s %q", name, reply), func(t *testing.T) {
				node := newNode(t)
				node.reply = func([]string) string { return reply + hangUp }
				wantUnclear(t, request(t.Context(), open(t, node.addr)), "")
			})
		}
	}
}
