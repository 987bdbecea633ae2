package httpguard

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/belaygo/belay/internal/background"
)

// Config sets up a Guard. Principal is required.
type Config struct {
	// Principal identifies the client, such as a tenant and a user in one string. Its
	// error, or "", ends the request with 500: put the Guard behind authentication. It
	// must not read the body, but may parse a form. Requests served under an old spelling are
	// forgotten under a new one: a repeat after such a release takes effect again.
	Principal func(*http.Request) (string, error)
	// Keys returns the lock keys of the rows that the handler changes, so that guard.Do
	// can be called with them inside the handler, and conflicts on its rows get a
	// verdict. Its error ends the request with 400. Defaults to none.
	Keys func(r *http.Request, body []byte) ([]string, error)
	// Operation names the operation. Defaults to the pattern of the mux, and the path
	// that http.StripPrefix has removed before it, or else method and path. Requests
	// served under an old name are forgotten under a new one.
	Operation func(*http.Request) string
	// Print returns the parts that a repeat must have in common with the request. Defaults
	// to method, path and query, as they came to the server and as they reach the handler,
	// media type and body: of a multipart body its parts. If a middleware has parsed a
	// form, the body is empty, and the default compares the request's PostForm and
	// MultipartForm. Of a message of httprelay it compares neither media type nor body.
	// The parts have no version of yours, as once.PrintOf has: after a release that changes them, a
	// repeat of an earlier request gets 422.
	Print func(r *http.Request, body []byte) [][]byte
	// Policy returns the decision for an answer by its status. Defaults to Done below 400,
	// and Failed from 400 on.
	Policy func(status int) Decision
	// KeepHeader reports whether a repeat gets one of the handler's headers or trailers, by
	// its canonical name. Defaults to all but Set-Cookie, Date and those of a connection,
	// which it never gets.
	KeepHeader func(name string) bool
	// Methods are those of requests that need a key; others pass. Defaults to POST and
	// PATCH.
	Methods []string
	// Optional lets requests without a key pass, unguarded.
	Optional bool
	// Wait is how long a repeat waits while the request is being served. Defaults to 0,
	// which answers 409 at once.
	Wait time.Duration
	// Timeout limits the work on a request. Defaults to 30 s.
	Timeout time.Duration
	// MaxBody and MaxAnswer limit the bodies of requests and of answers, in bytes. They
	// default to 1 MiB and 64 KiB.
	MaxBody, MaxAnswer int
	// Docs is the URL of a page about these errors: the types of problems are its
	// fragments missing, invalid, busy, exists, forgotten, mismatch, long, internal and
	// unavailable. Defaults to none.
	Docs string
	// Logger gets the errors behind 500 and 503. Defaults to slog.Default().
	Logger *slog.Logger
}

// largestAnswer leaves room for headers and the encoding in belay_answer, which takes 16 MiB.
const largestAnswer = 8 << 20

func (c Config) withDefaults() Config {
	if c.Keys == nil {
		c.Keys = func(*http.Request, []byte) ([]string, error) { return nil, nil }
	}
	if c.Operation == nil {
		c.Operation = operation
	}
	if c.Policy == nil {
		c.Policy = policy
	}
	if c.KeepHeader == nil {
		c.KeepHeader = func(string) bool { return true }
	}
	if c.Methods == nil {
		c.Methods = []string{http.MethodPost, http.MethodPatch}
	}
	c.Timeout = cmp.Or(c.Timeout, 30*time.Second)
	c.MaxBody = cmp.Or(c.MaxBody, 1<<20)
	c.MaxAnswer = cmp.Or(c.MaxAnswer, 64<<10)
	c.Logger = background.Logger(c.Logger)
	return c
}

func (c Config) validate() error {
	switch {
	case c.Principal == nil:
		return errors.New("httpguard: Config.Principal is nil: set it to a function that returns the user of a request")
	case c.Timeout < 0 || c.Wait < 0:
		return fmt.Errorf("httpguard: Timeout %v or Wait %v is negative", c.Timeout, c.Wait)
	case c.MaxBody < 0 || c.MaxAnswer < 0 || c.MaxAnswer > largestAnswer:
		return fmt.Errorf("httpguard: MaxBody %d or MaxAnswer %d is negative, or MaxAnswer is above %d", c.MaxBody, c.MaxAnswer, largestAnswer)
	}
	return nil
}

// A Decision decides about an answer and the handler's writes.
type Decision int

const (
	// Done commits the handler's writes, and stores the answer.
	Done Decision = 1 + iota
	// Refused rolls back the handler's writes, and stores the answer, for example for a
	// declined card.
	Refused
	// Failed rolls back, and stores nothing.
	Failed
)

func policy(status int) Decision {
	if status < http.StatusBadRequest {
		return Done
	}
	return Failed
}
