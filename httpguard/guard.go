package httpguard

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/once"
)

// New returns a middleware that serves each request to its handler once, as an operation of g. The
// tables of package once must be in g's database. Wrap the handlers that a mux calls, not the
// mux: its pattern is the name of the operation.
func New(g *guard.Guard, cfg Config) (func(http.Handler) http.Handler, error) {
	if g == nil {
		return nil, errors.New("httpguard: guard is nil")
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	m := &middleware{g, cfg.withDefaults()}
	return m.wrap, nil
}

// A middleware serves requests once.
type middleware struct {
	guard *guard.Guard
	cfg   Config
}

func (m *middleware) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !slices.Contains(m.cfg.Methods, r.Method) || m.cfg.Optional && r.Header.Values("Idempotency-Key") == nil {
			next.ServeHTTP(w, r)
			return
		}
		e := &exchange{middleware: m, next: next, w: w, r: r}
		if err := e.serve(); err != nil {
			e.fail(err)
		}
	})
}

// An exchange is one request with its answer.
type exchange struct {
	*middleware
	next    http.Handler
	w       http.ResponseWriter
	r       *http.Request
	copies  []*http.Request // of r
	request once.Request
	body    []byte
	told    Decision // by Decide
	after   []func() // by AfterCommit
	rec     *recorder
}

// errFailed rolls back the transaction; the recorder has the answer.
var errFailed = errors.New("httpguard: the handler has failed")

// errPrincipal and errKeys are of the program's own functions.
var (
	errPrincipal = errors.New("httpguard: Principal names nobody")
	errKeys      = errors.New("httpguard: the request has no keys")
)

func (e *exchange) serve() error {
	defer e.removeFiles()
	keys, err := e.read()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.r.Context()), e.cfg.Timeout)
	defer cancel()
	opts := []guard.Option{guard.Wait(e.cfg.Wait), guard.MaxAnswer(1<<24 - 1)}
	for _, key := range keys {
		opts = append(opts, guard.Also(key))
	}
	got, err := guard.Once(ctx, e.guard, e.request, e.run, opts...)
	if err == errFailed { //nolint:errorlint // of run itself
		failed := e.rec.answer(everyHeader)
		failed.send(e.w)
		return nil
	}
	if err != nil {
		return err
	}
	if got.Replayed {
		e.w.Header().Set("Idempotent-Replayed", "true")
		got.Value.send(e.w)
		return nil
	}
	first := e.rec.answer(everyHeader) // with the headers that a repeat does not get
	if got.Refused || len(e.after) == 0 {
		first.send(e.w)
		return nil
	}
	first.sendNow(e.w)
	for _, f := range e.after {
		f()
	}
	return nil
}

// read reads the parts that name the request.
func (e *exchange) read() (keys []string, err error) {
	key, err := keyOf(e.r.Header)
	if err != nil {
		return nil, err
	}
	principal, err := e.cfg.Principal(e.r)
	if err != nil || principal == "" {
		return nil, errors.Join(errPrincipal, err)
	}
	if e.body, err = readBody(e.w, e.r, e.cfg.MaxBody); err != nil {
		return nil, err
	}
	if keys, err = e.cfg.Keys(e.copy(e.r.Context()), e.body); err != nil {
		return nil, errors.Join(errKeys, err)
	}
	if e.request, err = e.named(key, principal); err != nil {
		return nil, errors.Join(errBody, err)
	}
	return keys, nil
}

// exchangeKey is the key of the exchange in a handler's context.
type exchangeKey struct{}

// run has the handler answer.
func (e *exchange) run(ctx context.Context, _ *gorm.DB) (answer, error) {
	e.rec, e.told, e.after = newRecorder(e.w.Header(), e.cfg.MaxAnswer), 0, nil
	r := e.copy(context.WithValue(ctx, exchangeKey{}, e))
	e.next.ServeHTTP(e.rec, r)
	if err := e.rec.finish(r.Method); err != nil {
		return answer{}, err
	}
	a := e.rec.answer(func(name string) bool { return !passing[name] && e.cfg.KeepHeader(name) })
	decision := e.told
	if decision == 0 {
		decision = e.cfg.Policy(a.Status)
	}
	switch decision {
	case Done:
		return a, nil
	case Refused:
		return answer{}, guard.Refuse(a)
	}
	return answer{}, errFailed
}

// Decide sets the decision about the answer, whatever its status. It does nothing outside
// of a handler that a Guard calls.
func Decide(ctx context.Context, d Decision) {
	if e, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		e.told = d
	}
}

// AfterCommit calls f when the request's transaction is known to be committed, in the order of
// the calls. The answer is flushed before: a client has all of it while f runs, but an HTTP/2
// stream ends only after f. If the writer that the Guard was given cannot be flushed, the answer
// is sent after f. f is not called again for repeats, nor if the process dies before. Outside of
// a handler that a Guard calls, AfterCommit does nothing.
func AfterCommit(ctx context.Context, f func()) {
	if e, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		e.after = append(e.after, f)
	}
}
