package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// providerName is the variable that has the address of the payments' provider.
const providerName = "BELAY_CHAOS_PROVIDER"

// A charge is a line of the provider's ledger: one that was made, or was declined.
type charge struct {
	No       int64  `json:"no"`
	ID       string `json:"id"` // that the caller gave
	Receipt  string `json:"receipt"`
	Declined bool   `json:"declined,omitempty"`

	at time.Time
}

// A fate is what becomes of a call.
type fate string

const (
	prompt     fate = "prompt"
	lateAnswer fate = "late"                // the charge is made when nobody waits any more
	cutBefore  fate = "cut before it"       // the connection is cut, and no charge is made
	cutAfter   fate = "cut behind it"       // the charge is made, and the connection is cut
	failsAfter fate = "failing behind it"   // the charge is made, and the answer is a 500
	isAway     fate = "away"                // no charge is made, and the answer is a 503
	inProgress fate = "already in progress" // another call with the id is not ended: a 409
)

// fates are drawn from.
var fates = []fate{prompt, prompt, prompt, prompt, prompt, prompt, prompt, lateAnswer, cutBefore, cutAfter, cutAfter, failsAfter, isAway}

// A provider charges once for each id that it remembers. It runs in the process of the test, which nobody kills.
type provider struct {
	Addr string

	seed       uint64
	remembered time.Duration
	server     *http.Server

	mu      sync.Mutex
	ledger  []charge
	known   map[string]charge
	working map[string]bool
	tries   map[int64]int // calls of each payment
	calls   map[fate]int
	calm    bool // all calls are prompt
}

func startProvider(t testing.TB, seed uint64, remembered time.Duration) *provider {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{
		Addr: l.Addr().String(), seed: seed, remembered: remembered,
		known: make(map[string]charge), working: make(map[string]bool), tries: make(map[int64]int), calls: make(map[fate]int),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /charges", p.charge)
	p.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- p.server.Serve(l) }()
	t.Cleanup(func() {
		_ = p.server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return p
}

// charge serves a call. What it has begun it ends, whether the client waits or not.
func (p *provider) charge(w http.ResponseWriter, r *http.Request) {
	no, err := strconv.ParseInt(r.FormValue("no"), 10, 64)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	id := r.Header.Get("Idempotency-Key")
	c, known, f := p.begin(no, id)
	switch {
	case f == inProgress:
		w.WriteHeader(http.StatusConflict)
		return
	case f == isAway:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case f == cutBefore:
		panic(http.ErrAbortHandler)
	case !known:
		if f == lateAnswer {
			linger(context.Background(), callTimeout*3/2)
		}
		c = p.enter(no, id)
	}
	switch {
	case f == cutAfter:
		panic(http.ErrAbortHandler)
	case f == failsAfter:
		w.WriteHeader(http.StatusInternalServerError)
		return
	case c.Declined:
		w.WriteHeader(http.StatusPaymentRequired)
	}
	fmt.Fprint(w, c.Receipt)
}

// begin returns what is known of an id, and the fate of the call.
func (p *provider) begin(no int64, id string) (c charge, known bool, f fate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tries[no]++
	f = prompt
	if !p.calm {
		f = fates[draws(p.seed, fmt.Sprintf("charge %d.%d", no, p.tries[no])).IntN(len(fates))]
	}
	c, known = p.known[id]
	if known && time.Since(c.at) > p.remembered {
		c, known = charge{}, false
	}
	if !known && p.working[id] {
		f = inProgress
	}
	if !known && f != inProgress && f != isAway && f != cutBefore {
		p.working[id] = true
	}
	p.calls[f]++
	return c, known, f
}

// enter makes a charge, or declines it.
func (p *provider) enter(no int64, id string) charge {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.working, id)
	c := charge{No: no, ID: id, Declined: declines(no), at: time.Now()}
	c.Receipt = fmt.Sprintf("charge %d", len(p.ledger)+1)
	p.ledger, p.known[id] = append(p.ledger, c), c
	return c
}

// declines reports whether the provider declines a payment.
func declines(no int64) bool { return no%7 == 3 }

// calmDown has all further calls be prompt.
func (p *provider) calmDown() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calm = true
}

// forget forgets all ids, as if their time were over. Whoever calls now is charged again.
func (p *provider) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.known)
}

// idle reports whether no call is under way that makes a charge.
func (p *provider) idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.working) == 0
}

// charges returns the ledger, and counts the calls by what became of them.
func (p *provider) charges() ([]charge, map[fate]int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.ledger), maps.Clone(p.calls)
}

// TestProvider: a charge is made once for an id, as long as that is remembered.
func TestProvider(t *testing.T) {
	for _, tt := range []struct {
		name       string
		remembered time.Duration
		ids        []string
		charges    int
	}{
		{"one id", time.Hour, []string{"a", "a"}, 1},
		{"two ids", time.Hour, []string{"a", "b"}, 2},
		{"a short memory", time.Nanosecond, []string{"a", "a"}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := startProvider(t, 1, tt.remembered)
			p.calmDown()
			receipts := make(map[string]bool)
			for _, id := range tt.ids {
				receipt, err := (paying{p.Addr}).charge(t.Context(), id, 1)
				if err != nil {
					t.Fatal(err)
				}
				receipts[receipt] = true
			}
			if list, _ := p.charges(); len(list) != tt.charges || len(receipts) != tt.charges {
				t.Errorf("%d charges, %d receipts, want %d", len(list), len(receipts), tt.charges)
			}
		})
	}
}

// TestProviderFails: each fate makes the charge, or does not, and answers as it says.
func TestProviderFails(t *testing.T) {
	was := fates
	t.Cleanup(func() { fates = was })
	for f, charges := range map[fate]int{prompt: 1, lateAnswer: 1, cutBefore: 0, cutAfter: 1, failsAfter: 1, isAway: 0} {
		fates = []fate{f}
		p := startProvider(t, 1, time.Hour)
		_, err := (paying{p.Addr}).charge(t.Context(), "a", 1)
		if list, calls := p.charges(); len(list) != charges || calls[f] != 1 || !p.idle() {
			t.Errorf("%s: %d charges, want %d; calls: %v", f, len(list), charges, calls)
		}
		if answers := f == prompt || f == lateAnswer; (err == nil) != answers {
			t.Errorf("%s: error is %v", f, err)
		}
	}
}
