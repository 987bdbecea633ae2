package redislock_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock/lockengine"
)

// What Aliyun's proxy answers to a script that it refuses.
const (
	refusedKeys    = "ERR bad lua script for redis cluster, all the keys that the script uses should be passed using the KEYS array, and KEYS should not be in expression"
	refusedCommand = "ERR bad lua script for redis cluster, first parameter of redis.call/redis.pcall must be a single literal string."
	refusedSlots   = "ERR eval/evalsha command keys must be in same slot"
	refusedNoKey   = "ERR for redis cluster, eval/evalsha number of keys can't be negative or zero"
)

// A provider is a proxy before one redis-server that refuses scripts by their text, as the
// documentation of providers says. See docs/setup.md.
type provider struct {
	addr   string
	server *teststack.RedisServer

	mu      sync.Mutex
	refuses func(script string) string // the answer to a script, empty if it is passed on
	refused []string                   // the answers
	scripts int                        // that were passed on
}

func newProvider(tb testing.TB) *provider {
	tb.Helper()
	p := &provider{server: teststack.StartRedis(tb, teststack.Volatile), refuses: refusedText}
	p.addr = serve(tb, p.pass)
	return p
}

// pass forwards commands to the server, and lets it answer with an error to those that are
// refused, so that answers keep their order.
func (p *provider) pass(client net.Conn) {
	server, err := net.Dial("tcp", p.server.Addr)
	if err != nil {
		return
	}
	var answers sync.WaitGroup
	defer answers.Wait()
	defer server.Close()
	answers.Go(func() { _, _ = io.Copy(client, server) })
	r := bufio.NewReader(client)
	for {
		args, err := readCommand(r)
		if err != nil {
			return
		}
		if answer := p.check(args); answer != "" {
			args = []string{"eval", "return redis.error_reply(ARGV[1])", "0", answer}
		}
		command := fmt.Sprintf("*%d\r\n", len(args))
		for _, arg := range args {
			command += fmt.Sprintf("$%d\r\n%s\r\n", len(arg), arg)
		}
		if _, err := io.WriteString(server, command); err != nil {
			return
		}
	}
}

// check returns the answer to a command that is refused.
func (p *provider) check(args []string) (answer string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch strings.ToLower(args[0]) {
	case "script":
		answer = p.refuses(args[2])
	case "evalsha":
		answer = refusedNames(args)
		p.scripts++
	case "eval":
		if answer = refusedNames(args); answer == "" {
			answer = p.refuses(args[1])
		}
		p.scripts++
	}
	if answer != "" {
		p.refused = append(p.refused, answer)
	}
	return answer
}

// count returns how many scripts were sent.
func (p *provider) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.scripts
}

// refusedNames checks the keys of an EVAL or EVALSHA.
func refusedNames(args []string) string {
	n, err := strconv.Atoi(args[2])
	if err != nil || n < 1 {
		return refusedNoKey
	}
	for _, key := range args[3 : 3+n] {
		if tagOf(key) != tagOf(args[3]) {
			return refusedSlots
		}
	}
	return ""
}

// tagOf returns the part of a key that decides its slot.
func tagOf(key string) string {
	if _, rest, found := strings.Cut(key, "{"); found {
		if tag, _, closed := strings.Cut(rest, "}"); closed && tag != "" {
			return tag
		}
	}
	return key
}

var (
	luaComment = regexp.MustCompile(`--[^\n]*`)
	luaCall    = regexp.MustCompile(`redis\.p?call\(\s*([^,)]*?)\s*(?:,\s*([^,)]*?)\s*)?[,)]`)
	luaLiteral = regexp.MustCompile(`^'[a-z]+'$`)
	luaKey     = regexp.MustCompile(`^KEYS\[\d+\]$`)
	luaSet     = regexp.MustCompile(`(KEYS\[\d+\])\s*=[^=]`)
)

// refusedText checks the text of a script: the name of each command is written out, and its
// key is an element of KEYS. Nobody but PUBLISH may use an element that the script has set:
// the caller has not declared it.
func refusedText(script string) string {
	script = luaComment.ReplaceAllString(script, "")
	var set []string
	for _, m := range luaSet.FindAllStringSubmatch(script, -1) {
		set = append(set, m[1])
	}
	for _, m := range luaCall.FindAllStringSubmatch(script, -1) {
		command, key := m[1], m[2]
		switch {
		case !luaLiteral.MatchString(command):
			return refusedCommand
		case command == "'time'":
		case !luaKey.MatchString(key), slices.Contains(set, key) && !strings.HasSuffix(command, "publish'"):
			return refusedKeys
		}
	}
	return ""
}

// TestProviderRefuses: the proxy of these tests refuses what users of providers have reported.
func TestProviderRefuses(t *testing.T) {
	p := newProvider(t)
	client := redis.NewClient(&redis.Options{Addr: p.addr})
	defer client.Close()
	for _, tt := range []struct {
		script, want string
		keys         []string
	}{
		{"return redis.call('set', KEYS[1], 1)", "", []string{"k"}},
		{"return redis.call('mget', KEYS[1], KEYS[2])", "", []string{"k", "x:{k}"}},
		{"return redis.call('mget', KEYS[1], KEYS[2])", refusedSlots, []string{"k", "x"}},
		{"return redis.call('set', KEYS[1] .. ':1', 1)", refusedKeys, []string{"k"}},
		{"local key = KEYS[1]; redis.call('set', key, 1)", refusedKeys, []string{"k"}},
		{"KEYS[2] = ARGV[1]; redis.call('set', KEYS[2], 1)", refusedKeys, []string{"k"}},
		{"return redis.pcall(ARGV[1], KEYS[1], '0')", refusedCommand, []string{"k"}},
		{"return redis.call('time')", refusedNoKey, nil},
	} {
		err := client.Eval(t.Context(), tt.script, tt.keys, "publish").Err()
		if (tt.want == "") != (err == nil) || err != nil && err.Error() != tt.want {
			t.Errorf("%s: %v, want %q", tt.script, err, tt.want)
		}
	}
}

// TestBehindProvider: a provider's proxy passes all scripts on, and processes behind it wait in
// line, are notified, and take offers.
func TestBehindProvider(t *testing.T) {
	p := newProvider(t)
	e, next := openURL(t, "redis://"+p.addr), openURL(t, "redis://"+p.addr)
	direct := redis.NewClient(&redis.Options{Addr: p.server.Addr})
	defer direct.Close()
	handOver(t, e)

	b, _ := watch(t, next, hold.Key)
	acquire(t, e, hold)
	waiting := lockengine.Request{Key: hold.Key, Owner: "they:1", Waits: true}
	_, err := next.Acquire(t.Context(), waiting, ttl)
	wantHeld(t, err, hold.Owner)
	if n := inLine(t, direct, hold.Key); n != 1 {
		t.Errorf("%d engines in line, want 1", n)
	}
	release(t, e, hold)
	b.wait(t, "released")
	if fields := direct.HKeys(t.Context(), hold.Key).Val(); len(fields) != 1 || !strings.HasSuffix(fields[0], ":0") {
		t.Errorf("the lock has the fields %v, want an offer", fields)
	}
	acquire(t, next, waiting)
	if holder, err := e.Inspect(t.Context(), hold.Key); err != nil || holder.Owner != waiting.Owner {
		t.Errorf("Inspect: %+v, %v", holder, err)
	}
	before := p.count()
	release(t, next, waiting)
	acquire(t, e, hold)
	if n := p.count() - before; n != 2 {
		t.Errorf("a release and an acquire are %d scripts, want 2", n)
	}
	if err := e.Release(t.Context(), marked(hold)); err != nil {
		t.Error(err)
	}
	_, err = e.Acquire(t.Context(), unlessMarked(hold), ttl)
	wantIs(t, err, lockengine.ErrMarked)
	wantFindings(t, e, nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.refused) > 0 {
		t.Errorf("refused: %q", p.refused)
	}
}
