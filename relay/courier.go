package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/internal/fail"
)

// errLate is the reason of a message that may not be sent any more.
var errLate = errors.New("relay: undecided")

// A result is what became of a row, or the end of a courier.
type result struct {
	row   row
	tried bool
	err   error

	last bool  // the courier has ended
	rest []row // that it has not tried
	old  bool  // the rest is to be read again
}

// A courier sends rows of one key, in their order.
type courier struct {
	cfg     Config
	lanes   *lanes
	routes  map[string]Route
	results chan<- result
	closing context.Context // ends when Close begins
}

// errExited is the reason of a message whose call has ended its goroutine.
var errExited = errors.New("relay: the call has ended its goroutine, by runtime.Goexit")

// carry sends rows until one is not accepted.
func (c courier) carry(ctx context.Context, rows []row, term int64) {
	for n := range rows {
		if !c.next(ctx, rows[n:], term) {
			return
		}
	}
}

// next sends the first of the rows if it may be sent, and reports whether the rest is to be sent. The time
// for the call begins before that is known: the process may be paused between the two.
func (c courier) next(ctx context.Context, rows []row, term int64) bool {
	r := rows[0]
	route, _ := routeOf(c.routes, r.msg.Topic)
	ctx, cancel := c.lanes.clock.WithTimeout(ctx, route.Timeout)
	defer cancel()
	old := c.old(r)
	if c.closing.Err() != nil || !c.lanes.sends(r.lane, term) || old {
		c.results <- result{row: r, last: true, rest: rows, old: old}
		return false
	}
	return c.try(ctx, r, rows[1:])
}

// try sends a row, and reports whether the rest is to be sent.
func (c courier) try(ctx context.Context, r row, rest []row) bool {
	res := result{row: r, tried: true, err: errExited}
	defer func() { // also after a Goexit
		if res.last = res.err != nil || len(rest) == 0; res.last {
			res.rest = rest
		}
		c.results <- res
	}()
	res.err = c.send(ctx, r)
	return res.err == nil && len(rest) > 0
}

// old reports whether a row may be behind Until by the wall clock alone. The host may have been suspended,
// or the clock may have been set: the clock of the database, which decides that, is to be read again.
func (c courier) old(r row) bool {
	route, ok := routeOf(c.routes, r.msg.Topic)
	return ok && !late(route, r.age+time.Since(r.read)) && late(route, r.age+c.lanes.clock.Since(r.read))
}

// late reports whether a message of an age may not be sent any more.
func late(route Route, age time.Duration) bool { return route.Until > 0 && age >= route.Until }

func (c courier) send(ctx context.Context, r row) error {
	if r.bad != nil {
		return r.bad
	}
	route, ok := routeOf(c.routes, r.msg.Topic)
	if !ok {
		return errNoRoute
	}
	if late(route, r.age+time.Since(r.read)) {
		return fmt.Errorf("%w: it was not accepted within %v", errLate, route.Until)
	}
	defer c.watch(r, route.Timeout)()
	return background.Do(c.cfg.Logger, "send a message", func() error {
		fail.Point("relay/before-send")
		err := plain(route.send(ctx, r.msg))
		fail.Point("relay/sent")
		return err
	})
}

// A plainError is an error of a route by its class and its text.
type plainError struct {
	class error // ErrUnavailable, ErrRejected or nil
	text  string
}

func (e *plainError) Error() string { return e.text }
func (e *plainError) Unwrap() error { return e.class }

// plain calls the methods of an error here, where a panic in them is caught.
func plain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrUnavailable):
		return &plainError{ErrUnavailable, err.Error()}
	case errors.Is(err, ErrRejected):
		return &plainError{ErrRejected, err.Error()}
	}
	return &plainError{nil, err.Error()}
}

// overtime is how long a call may outlast its context before it is logged.
const overtime = 10 * time.Second

// watch logs a call that does not return: its key waits for it. The returned function ends the
// watch.
func (c courier) watch(r row, limit time.Duration) (returned func() bool) {
	return time.AfterFunc(limit+overtime, func() {
		c.cfg.Logger.Error("messages of a key are not sent: a call does not return at the end of its context",
			"message_id", r.msg.ID, "key", r.msg.Key, "topic", r.msg.Topic, "limit", limit)
	}).Stop
}

func routeOf(routes map[string]Route, topic string) (Route, bool) {
	if r, ok := routes[topic]; ok {
		return r, true
	}
	r, ok := routes[Others]
	return r, ok
}
