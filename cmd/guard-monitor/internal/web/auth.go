package web

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/lograte"
)

const (
	maxVerified = 1000 // passwords that are remembered
	comparing   = 2    // bcrypt comparisons at a time: each is slow by intent
	waiting     = 32   // requests that wait for one
	maxCost     = 15   // of a hash: 3 s
	minToken    = 16   // bytes
)

// Auth authenticates requests: users by a password, and readers of the metrics by
// a token. A nil Auth accepts every request.
type Auth struct {
	users map[string][]byte // bcrypt hashes
	token [sha256.Size]byte // of /metrics
	bears bool              // whether there is a token
	most  int               // the highest cost of a hash

	strangers lograte.Limit // lines about requests that are refused

	attempts *attempts
	match    func(hash, password []byte) error
	queue    chan struct{} // of those who compare, and who wait for that
	slots    chan struct{}
	mu       sync.Mutex
	verified map[[sha256.Size]byte]bool // of address, name and password
}

// NewAuth returns an Auth, or nil if there is neither a user nor a token. Each line
// of users is name:hash, as htpasswd -B writes it; blank lines and lines that begin
// with # are skipped. The token has at least 16 bytes.
func NewAuth(users []byte, metricsToken string) (*Auth, error) {
	a := &Auth{
		users: make(map[string][]byte), verified: make(map[[sha256.Size]byte]bool), attempts: newAttempts(),
		match: bcrypt.CompareHashAndPassword,
		queue: make(chan struct{}, comparing+waiting), slots: make(chan struct{}, comparing),
	}
	for n, line := range strings.Split(string(users), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := a.add(line); err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
	}
	if metricsToken != "" {
		if len(metricsToken) < minToken {
			return nil, fmt.Errorf("the token is shorter than %d bytes", minToken)
		}
		a.token, a.bears = sha256.Sum256([]byte(metricsToken)), true
	}
	if len(a.users) == 0 && !a.bears {
		return nil, nil
	}
	return a, nil
}

// add adds the user of a line. Its errors do not quote the line, which may hold a
// password in the clear.
func (a *Auth) add(line string) error {
	name, hash, ok := strings.Cut(line, ":")
	switch {
	case !ok || name == "":
		return errors.New("want name:hash, as htpasswd -B writes it")
	case a.users[name] != nil:
		return errors.New("this name was there already")
	}
	cost, err := bcrypt.Cost([]byte(hash))
	switch {
	case err != nil:
		return errors.New("what is behind the name is no bcrypt hash, as htpasswd -B writes it")
	case cost > maxCost:
		return fmt.Errorf("the hash has the cost %d, and would take seconds to check: %d at most", cost, maxCost)
	}
	a.users[name], a.most = []byte(hash), max(a.most, cost)
	return nil
}

type userKey struct{}

// user returns the name of the authenticated user, empty without Auth.
func user(ctx context.Context) string {
	name, _ := ctx.Value(userKey{}).(string)
	return name
}

// require passes the requests of users to next, those with the token for /metrics
// only, and all requests for /healthz and /livez. The paths must be exact.
func (a *Auth) require(next http.Handler, logger *slog.Logger) http.Handler {
	if a == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		metrics := a.hasToken(r)
		switch {
		case r.URL.Path == "/healthz", r.URL.Path == "/livez", metrics && r.URL.Path == "/metrics":
			next.ServeHTTP(w, r)
			return
		case metrics:
			http.Error(w, "the token is for /metrics only", http.StatusForbidden)
			return
		}
		name, ok, wait := a.check(r)
		if wait > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
			http.Error(w, "too many logins failed, or are under way: try again later", http.StatusTooManyRequests)
			return
		}
		if !ok {
			a.challenge(w, r, logger)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, name)))
	})
}

// challenge asks for authentication.
func (a *Auth) challenge(w http.ResponseWriter, r *http.Request, logger *slog.Logger) {
	if r.Header.Get("Authorization") != "" {
		a.strangers.Warn(r.Context(), logger, "authentication refused", slog.String("remote", r.RemoteAddr))
	}
	if len(a.users) > 0 {
		w.Header().Add("WWW-Authenticate", `Basic realm="guard-monitor", charset="UTF-8"`)
	}
	if a.bears {
		w.Header().Add("WWW-Authenticate", `Bearer realm="guard-monitor"`)
	}
	http.Error(w, "authentication required", http.StatusUnauthorized)
}

func (a *Auth) hasToken(r *http.Request) bool {
	kind, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	sum := sha256.Sum256([]byte(strings.TrimSpace(token)))
	return a.bears && strings.EqualFold(kind, "Bearer") && subtle.ConstantTimeCompare(sum[:], a.token[:]) == 1
}

// check returns the name of the user who sent the request, or how long to wait before
// the next attempt.
func (a *Auth) check(r *http.Request) (name string, ok bool, wait time.Duration) {
	name, password, ok := r.BasicAuth()
	if !ok || len(a.users) == 0 {
		return "", false, 0
	}
	ok, wait = a.password(r.Context(), r.RemoteAddr, name, password)
	return name, ok, wait
}

// password reports whether the password is right, or how long to wait before the next
// attempt. Right passwords are cached, since bcrypt is slow and a page sends many
// requests: so who is logged in never waits. They are cached for one address: for all of
// them the cache would tell anybody which guess is right, without a limit.
func (a *Auth) password(ctx context.Context, address, name, password string) (right bool, wait time.Duration) {
	sum := sha256.Sum256([]byte(network(address) + "\x00" + name + "\x00" + password))
	if a.known(sum) {
		return true, 0
	}
	if wait := a.attempts.wait(address, name, time.Now()); wait > 0 {
		return false, wait
	}
	select {
	case a.queue <- struct{}{}:
		defer func() { <-a.queue }()
	default:
		return false, time.Second
	}
	select {
	case a.slots <- struct{}{}:
		defer func() { <-a.slots }()
	case <-ctx.Done():
		return false, 0
	}
	if a.known(sum) { // by a request that went before
		return true, 0
	}
	if wait := a.attempts.wait(address, name, time.Now()); wait > 0 {
		return false, wait
	}
	if !a.compare(name, password) {
		a.attempts.fail(address, name, time.Now())
		return false, 0
	}
	a.remember(sum)
	return true, 0
}

// compare reports whether the password is right. If not, it takes as long for each
// name as for the one whose hash has the highest cost, so that names cannot be told by
// timing, not even those that exist.
func (a *Auth) compare(name, password string) bool {
	hash, exists := a.users[name]
	if !exists {
		hash = dummy(a.most)
	}
	if a.match(hash, []byte(password)) == nil && exists {
		return true
	}
	cost, _ := bcrypt.Cost(hash)
	for ; cost < a.most; cost++ { // each cost takes twice as long: 2^n + 2^n = 2^(n+1)
		_ = a.match(dummy(cost), []byte(password))
	}
	return false
}

// dummy returns a hash of no password that anybody knows.
func dummy(cost int) []byte {
	return fmt.Appendf(nil, "$2a$%02d$%s", cost, strings.Repeat("belay", 10)+"bel") //nolint:mnd // the length of salt and hash
}

func (a *Auth) known(sum [sha256.Size]byte) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.verified[sum]
}

func (a *Auth) remember(sum [sha256.Size]byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.verified) >= maxVerified {
		clear(a.verified)
	}
	a.verified[sum] = true
}
