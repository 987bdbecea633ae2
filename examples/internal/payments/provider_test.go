package payments_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/belaygo/belay/internal/wait"
)

const (
	// remembered is how long the provider remembers an id.
	remembered = until + timeout + 2*time.Second
	// pace is how long the provider works before a charge, and after it.
	pace = 15 * time.Millisecond
)

// The fates of a charge.
const (
	isLate    = "late"    // it is made when nobody waits any more
	isMute    = "mute"    // it is made, and not answered
	isFailing = "failing" // it is made, and the answer is a 500
	isAway    = "away"    // it is not made, and the answer is a 503
	isDying   = "dying"   // it is made, and the provider dies
)

// An entry is a line of the ledger: a charge, or a payment that was refused.
type entry struct {
	ID, No  string
	Cents   int
	Refused bool
	At      time.Time
}

// A provider charges once for each id that it remembers.
type provider struct {
	file *os.File

	mu      sync.Mutex
	known   map[string]entry
	working map[string]bool
	fate    string
	left    int // charges of the fate; less than 0: all
}

// openProvider goes on with the ledger of a provider that has died.
func openProvider(path string) (*provider, error) {
	list, err := readLedger(path)
	if err != nil {
		return nil, err
	}
	p := &provider{known: make(map[string]entry), working: make(map[string]bool)}
	for _, e := range list {
		p.known[e.ID] = e
	}
	p.file, err = os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return p, err
}

func readLedger(path string) (list []entry, err error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var e entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

// serveProvider runs a provider until ctx ends.
func serveProvider(ctx context.Context, _ string) error {
	p, err := openProvider(os.Getenv(childLedger))
	if err != nil {
		return err
	}
	defer p.file.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, "serves", listener.Addr())
	mux := http.NewServeMux()
	mux.HandleFunc("POST /charges", p.charge)
	mux.HandleFunc("POST /fate", p.setFate)
	mux.HandleFunc("POST /forget", p.forget)
	mux.HandleFunc("GET /working", p.countWorking)
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: mux}
	go func() { <-ctx.Done(); _ = server.Close() }()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// charge serves a payment. What it has begun it ends, whether the client waits or not.
func (p *provider) charge(w http.ResponseWriter, r *http.Request) {
	cents, _ := strconv.Atoi(r.FormValue("cents"))
	e := entry{ID: r.Header.Get("Idempotency-Key"), No: r.FormValue("no"), Cents: cents}
	known, fate, status := p.begin(e)
	if status != 0 {
		w.WriteHeader(status)
		return
	}
	if known.ID == "" {
		if fate == isLate {
			work(2 * timeout)
		}
		work(pace)
		e.Refused = refuses(e.No)
		if err := p.enter(e); err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		known = e
	}
	switch fate {
	case isDying:
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Kill()
		}
		select {}
	case isMute:
		<-r.Context().Done()
		return
	case isFailing:
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	work(pace)
	if known.Refused {
		w.WriteHeader(http.StatusPaymentRequired)
		return
	}
	fmt.Fprint(w, "receipt of "+known.No)
}

// work lasts, whether the client waits or not.
func work(d time.Duration) { _ = wait.Sleep(context.Background(), d, nil) }

// refuses reports whether a payment is refused.
func refuses(no string) bool { return no[len(no)-1] == '7' }

// begin returns what is known of an id, and what becomes of the charge, or a status other than 0.
func (p *provider) begin(e entry) (known entry, fate string, status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left != 0 {
		fate = p.fate
	}
	if p.left > 0 {
		p.left--
	}
	known = p.known[e.ID]
	if time.Since(known.At) > remembered {
		known = entry{}
	}
	switch {
	case fate == isAway:
		return known, fate, http.StatusServiceUnavailable
	case known.ID != "" && (known.No != e.No || known.Cents != e.Cents):
		return known, fate, http.StatusUnprocessableEntity
	case known.ID == "" && p.working[e.ID]:
		return known, fate, http.StatusConflict
	}
	if known.ID == "" {
		p.working[e.ID] = true
	}
	return known, fate, 0
}

// enter writes a line into the ledger.
func (p *provider) enter(e entry) error {
	e.At = time.Now()
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.working, e.ID)
	p.known[e.ID] = e
	_, err = p.file.Write(append(line, '\n'))
	return err
}

// setFate sets what becomes of the next charges.
func (p *provider) setFate(_ http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fate = r.FormValue("fate")
	p.left, _ = strconv.Atoi(cmp.Or(r.FormValue("charges"), "0"))
}

// forget forgets all ids, as if their time were over.
func (p *provider) forget(http.ResponseWriter, *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.known)
}

func (p *provider) countWorking(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprint(w, len(p.working))
}
