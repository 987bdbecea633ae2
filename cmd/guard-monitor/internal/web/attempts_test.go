package web_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/web"
	"github.com/belaygo/belay/internal/testwait"
)

// login sends a request of a user from an address.
func login(s http.Handler, address, name, password string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:9440/events", nil)
	r.RemoteAddr = address
	r.SetBasicAuth(name, password)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return serve(s, r)
}

// Who guesses is told to wait, whether or not the name exists. Others, and who is
// logged in from the same address, are not.
func TestGuessingIsLimited(t *testing.T) {
	s := newSite(t, func(c *web.Config) { c.Auth = newAuth(t) })
	const here, there = "203.0.113.1:4000", "203.0.113.2:4000"
	for _, name := range []string{"alice", "mallory"} {
		for n := range web.NameBurst {
			if w := login(s, here, name, "guess"); w.Code != http.StatusUnauthorized {
				t.Fatalf("guess %d of %s: %d, want 401", n, name, w.Code)
			}
		}
		w := login(s, here, name, "guess")
		if seconds, err := strconv.Atoi(w.Header().Get("Retry-After")); w.Code != http.StatusTooManyRequests || err != nil || seconds < 1 {
			t.Errorf("one more guess of %s: %d, Retry-After %q, want 429", name, w.Code, w.Header().Get("Retry-After"))
		}
	}
	if w := login(s, here, "alice", "pass:word"); w.Code != http.StatusTooManyRequests {
		t.Errorf("the right password after the guesses: %d, want 429", w.Code)
	}
	if w := login(s, there, "alice", "pass:word"); w.Code != http.StatusOK {
		t.Errorf("alice from elsewhere: %d, want 200", w.Code)
	}
	if w := login(s, here, "alice", "pass:word"); w.Code != http.StatusTooManyRequests {
		t.Errorf("the right password, after the guesses, of alice, who is logged in elsewhere: %d, want 429", w.Code)
	}
	for range web.NameBurst {
		login(s, there, "alice", "guess")
	}
	if w := login(s, there, "alice", "pass:word"); w.Code != http.StatusOK {
		t.Errorf("alice, who is logged in there: %d, want 200", w.Code)
	}
}

// An address that tries many names is limited, too. IPv6 counts by network.
func TestAddressesAreLimited(t *testing.T) {
	for _, addresses := range [][3]string{
		{"203.0.113.1", "203.0.113.1", "203.0.113.2"},
		{"2001:db8::1", "2001:db8::2:ffff", "2001:db8:0:1::1"},
	} {
		a, now := web.NewAttempts(), time.Now()
		n := 0
		for ; a.Wait(addresses[1], "next", now) == 0; n++ {
			a.Fail(addresses[0], fmt.Sprint("name-", n), now)
		}
		if n < web.NameBurst || n > 100 {
			t.Errorf("%s is limited after %d names", addresses[0], n)
		}
		if wait := a.Wait(addresses[2], "next", now); wait != 0 {
			t.Errorf("%s waits %v for what %s did", addresses[2], wait, addresses[0])
		}
		wait := a.Wait(addresses[0], "next", now)
		if a.Wait(addresses[0], "next", now.Add(wait-1)) == 0 || a.Wait(addresses[0], "next", now.Add(wait)) != 0 {
			t.Errorf("the wait of %v is not exact", wait)
		}
	}
}

func TestAttemptsAreBoundedInMemory(t *testing.T) {
	a, now := web.NewAttempts(), time.Now()
	for n := range 3 * web.MaxLimited {
		a.Fail(netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}).String(), "alice", now)
	}
	if n := a.Remembered(); n > web.MaxLimited {
		t.Errorf("%d are remembered", n)
	}
	if a.Wait("10.255.0.1", "alice", now) != 0 {
		t.Error("who has not failed must wait")
	}
}

// While all comparisons are under way and more wait, one more login is refused at once,
// and who is logged in passes.
func TestQueueOfLoginsIsBounded(t *testing.T) {
	auth := newAuth(t)
	s := newSite(t, func(c *web.Config) { c.Auth = auth })
	if w := login(s, "203.0.113.1:1", "alice", "pass:word"); w.Code != http.StatusOK {
		t.Fatalf("alice: %d", w.Code)
	}
	var once sync.Once
	var compared, refused atomic.Int64
	release := make(chan struct{})
	auth.Watch(func(int) {
		compared.Add(1)
		<-release
	})
	var logins sync.WaitGroup
	for n := range web.MaxQueue + 1 {
		logins.Go(func() {
			w := login(s, fmt.Sprintf("198.51.100.%d:1", n), "bob", "guess")
			if w.Code == http.StatusTooManyRequests && w.Header().Get("Retry-After") == "1" {
				refused.Add(1)
			}
		})
	}
	defer once.Do(func() { close(release) })
	testwait.Until(t, "one is refused", func() bool { return refused.Load() == 1 })
	if n := compared.Load(); n > 2 {
		t.Errorf("%d comparisons at a time", n)
	}
	if w := login(s, "203.0.113.1:1", "alice", "pass:word"); w.Code != http.StatusOK {
		t.Errorf("alice, who is logged in: %d, want 200", w.Code)
	}
	once.Do(func() { close(release) })
	logins.Wait()
	if n := refused.Load(); n != 1 {
		t.Errorf("%d logins were refused, want 1", n)
	}
}

// A failed login costs the same whoever was named: the sum of 2^cost is the time that
// its comparisons take.
func TestNamesCannotBeToldByTime(t *testing.T) {
	var users strings.Builder
	for name, cost := range map[string]int{"cheap": bcrypt.MinCost, "dear": bcrypt.MinCost + 3} {
		hash, err := bcrypt.GenerateFromPassword([]byte("right"), cost)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&users, "%s:%s\n", name, hash)
	}
	auth, err := web.NewAuth([]byte(users.String()), "")
	if err != nil {
		t.Fatal(err)
	}
	work := 0
	auth.Watch(func(cost int) { work += 1 << cost })
	s := newSite(t, func(c *web.Config) { c.Auth = auth })
	for _, name := range []string{"cheap", "dear", "nobody", ""} {
		work = 0
		if w := login(s, "203.0.113.1:1", name, "wrong"); w.Code != http.StatusUnauthorized {
			t.Errorf("%q: %d, want 401", name, w.Code)
		}
		if want := 1 << (bcrypt.MinCost + 3); work != want {
			t.Errorf("the work for %q is %d, want %d", name, work, want)
		}
	}
	for cost := bcrypt.MinCost; cost < bcrypt.MinCost+4; cost++ {
		if err := bcrypt.CompareHashAndPassword(web.Dummy(cost), []byte("x")); !errors.Is(err, bcrypt.ErrMismatchedHashAndPassword) {
			t.Errorf("the dummy of cost %d is compared with: %v", cost, err)
		}
	}
}

// Behind a proxy that is trusted the client counts, and nobody chooses an address.
func TestTrustedProxies(t *testing.T) {
	s := newSite(t, withWrites, func(c *web.Config) {
		c.Auth = newAuth(t)
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::5/128")}
	})
	s.explain(t)
	for _, tt := range []struct{ peer, forwarded, want string }{
		{"203.0.113.1:1", "", "203.0.113.1"},
		{"203.0.113.1:1", "198.51.100.1", "203.0.113.1"},
		{"10.0.0.1:1", "", "10.0.0.1"},
		{"10.0.0.1:1", "198.51.100.1", "198.51.100.1"},
		{"10.0.0.1:1", "192.0.2.1, 198.51.100.1", "198.51.100.1"},
		{"10.0.0.1:1", "192.0.2.1, 198.51.100.1, 10.1.1.1", "198.51.100.1"},
		{"[2001:db8::5]:1", "2001:db8::7", "2001:db8::7"},
		{"[::ffff:10.0.0.1]:1", "198.51.100.1", "198.51.100.1"},
		{"10.0.0.1:1", "198.51.100.1, <script>", "10.0.0.1"},
		{"10.0.0.1:1", "198.51.100.1:4711", "198.51.100.1"},
		{"10.0.0.1:1", "[2001:db8::7]:4711", "2001:db8::7"},
		{"10.0.0.1:1", "[2001:db8::7]", "2001:db8::7"},
		{"10.0.0.1:1", "192.0.2.1, 198.51.100.1:1, 10.1.1.1:2", "198.51.100.1"},
		{"10.0.0.1:1", "198.51.100.1:port", "10.0.0.1"},
	} {
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:9440/incidents/"+incidentID+"/ack", nil)
		r.RemoteAddr = tt.peer
		r.SetBasicAuth("alice", "pass:word")
		if tt.forwarded != "" {
			r.Header.Set("X-Forwarded-For", tt.forwarded)
		}
		serve(s, r)
		lines, err := s.store.AuditLines(t.Context(), store.Page{Limit: 1})
		if err != nil || len(lines) != 1 || lines[0].Remote != tt.want {
			t.Errorf("%s forwards %q: %+v, %v, want %s", tt.peer, tt.forwarded, lines, err, tt.want)
		}
	}
	for range web.NameBurst {
		login(s, "10.0.0.1:1", "alice", "guess", "X-Forwarded-For", "198.51.100.1")
	}
	for client, want := range map[string]int{"198.51.100.1": http.StatusTooManyRequests, "198.51.100.2": http.StatusUnauthorized} {
		if w := login(s, "10.0.0.1:1", "alice", "guess", "X-Forwarded-For", client); w.Code != want {
			t.Errorf("a guess of %s behind the proxy: %d, want %d", client, w.Code, want)
		}
	}
}

// Browsers are told to use https alone under the name that has a certificate, and not
// for localhost, where other programs listen.
func TestHSTS(t *testing.T) {
	const name = "Strict-Transport-Security"
	for url, want := range map[string]bool{"https://monitor.example.com:9440/belay": true, "http://monitor.example.com": false, "": false} {
		s := newSite(t, func(c *web.Config) { c.ExternalURL = url })
		for _, host := range []string{"monitor.example.com:9440", "localhost:9440", "127.0.0.1:9440"} {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Host = host
			got := serve(s, r).Header().Get(name)
			if want := want && strings.HasPrefix(host, "monitor"); (got != "") != want || want && !strings.HasPrefix(got, "max-age=") {
				t.Errorf("%s, asked as %s: %q, want one %t", url, host, got, want)
			}
		}
	}
}
