package web

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"golang.org/x/crypto/bcrypt"
)

const (
	maxVerified = 1000 // passwords that are remembered
	comparing   = 2    // bcrypt comparisons at a time: each is slow by intent
	minToken    = 16   // bytes
)

// Auth authenticates requests: users by a password, and readers of the metrics by
// a token. A nil Auth accepts every request.
type Auth struct {
	users map[string][]byte // bcrypt hashes
	token [sha256.Size]byte // of /metrics
	bears bool              // whether there is a token
	dummy []byte

	slots    chan struct{}
	mu       sync.Mutex
	verified map[[sha256.Size]byte]bool // of name and password
}

// NewAuth returns an Auth, or nil if there is neither a user nor a token. Each line
// of users is name:hash, as htpasswd -B writes it; blank lines and lines that begin
// with # are skipped. The token has at least 16 bytes.
func NewAuth(users []byte, metricsToken string) (*Auth, error) {
	a := &Auth{
		users: make(map[string][]byte), slots: make(chan struct{}, comparing),
		verified: make(map[[sha256.Size]byte]bool),
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
	if _, err := bcrypt.Cost([]byte(hash)); err != nil {
		return errors.New("what is behind the name is no bcrypt hash, as htpasswd -B writes it")
	}
	a.users[name], a.dummy = []byte(hash), []byte(hash)
	return nil
}

type userKey struct{}

// user returns the name of the authenticated user, empty without Auth.
func user(ctx context.Context) string {
	name, _ := ctx.Value(userKey{}).(string)
	return name
}

// require passes the requests of users to next, those with the token for /metrics
// only, and all requests for /healthz. The paths must be exact.
func (a *Auth) require(next http.Handler, logger *slog.Logger) http.Handler {
	if a == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		metrics := a.hasToken(r)
		switch {
		case r.URL.Path == "/healthz", metrics && r.URL.Path == "/metrics":
			next.ServeHTTP(w, r)
			return
		case metrics:
			http.Error(w, "the token is for /metrics only", http.StatusForbidden)
			return
		}
		name, ok := a.check(r)
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
		logger.LogAttrs(r.Context(), slog.LevelWarn, "authentication refused", slog.String("remote", r.RemoteAddr))
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

// check returns the name of the user who sent the request.
func (a *Auth) check(r *http.Request) (name string, ok bool) {
	name, password, ok := r.BasicAuth()
	if !ok || len(a.users) == 0 {
		return "", false
	}
	return name, a.password(r.Context(), name, password)
}

// password reports whether the password is right. It takes as long for a name that
// does not exist, so that names cannot be found by timing. Right passwords are
// cached, since bcrypt is slow and a page sends many requests.
func (a *Auth) password(ctx context.Context, name, password string) bool {
	sum := sha256.Sum256([]byte(name + "\x00" + password))
	a.mu.Lock()
	right := a.verified[sum]
	a.mu.Unlock()
	if right {
		return true
	}
	select {
	case a.slots <- struct{}{}:
		defer func() { <-a.slots }()
	case <-ctx.Done():
		return false
	}
	hash, known := a.users[name]
	if !known {
		hash = a.dummy
	}
	if bcrypt.CompareHashAndPassword(hash, []byte(password)) != nil || !known {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.verified) >= maxVerified {
		clear(a.verified)
	}
	a.verified[sum] = true
	return true
}
