package chaos_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/once"
)

// requestEach is how long a request is the newest. Meanwhile all workers make it, and some of
// those before.
const requestEach = 60 * time.Millisecond

// tallyOf is the row that a request raises.
func tallyOf(id int64) int64 { return 1 + id/2%rowsOf[tallies] }

// requestOf is a request. Those with odd numbers are made by Once, the others by For.
func requestOf(id int64) once.Request {
	return once.Request{Operation: "tally", Scope: once.Anyone, ID: fmt.Sprint(id), Print: once.PrintOf(1, []byte(fmt.Sprint(tallyOf(id))))}
}

func byOnce(id int64) bool { return id%2 != 0 }

// requestKey is the key of Do.
func requestKey(id int64) string {
	if byOnce(id) {
		return requestOf(id).Key()
	}
	return keyOf(tallies, tallyOf(id))
}

// serve raises the tally, and says so by a row that no index keeps from being there twice.
// It would take effect again whenever it runs again.
func serve(ctx context.Context, tx *gorm.DB, w *worker, t task, do string) (answer string, err error) {
	s := &Service{Request: t.id, By: do}
	err = guard.Update(&Tally{ID: tallyOf(t.id)}, func(y *Tally) error {
		w.journal.write(line{At: loaded, Do: do, Key: keyOf(tallies, y.ID), Version: int64(y.Version)})
		y.N++
		s.N = y.N
		return nil
	}).Run(ctx, tx)
	if err != nil {
		return "", err
	}
	if s.Sent = requestSends(t.id); s.Sent {
		if err := sendNote(ctx, tx, topicOf(tallyOf(t.id)), keyOf(tallies, tallyOf(t.id)), serviceNo(t.id), s.N); err != nil {
			return "", err
		}
	}
	return s.answer(), tx.Create(s).Error
}

// answer is what the request gets that made s.
func (s *Service) answer() string { return fmt.Sprintf("%d by %s", s.N, s.By) }

// request makes a request once.
func (w *worker) request(ctx context.Context, t task, do string) (answer string, replayed bool, err error) {
	work := func(ctx context.Context, tx *gorm.DB) (string, error) {
		if !t.after {
			linger(ctx, t.takes)
		}
		answer, err := serve(ctx, tx, w, t, do)
		if t.after && err == nil {
			linger(ctx, t.takes)
		}
		return answer, err
	}
	if !byOnce(t.id) {
		op := func(ctx context.Context, tx *gorm.DB) error {
			_, err := work(ctx, tx)
			return err
		}
		return "", false, w.guard.Do(ctx, t.key, op, append(slices.Clip(t.opts), guard.For(requestOf(t.id)))...)
	}
	got, err := guard.Once(ctx, w.guard, requestOf(t.id), work, t.opts...)
	return got.Value, got.Replayed, err
}

// tries bounds how often a client makes one request.
const tries = 40

// ask is a client: it makes a request again until that has taken effect, by itself or by
// another.
func (w *worker) ask(ctx context.Context, t task, do string) {
	for n := range tries {
		name := do
		if n > 0 {
			name = fmt.Sprintf("%s.again%d", do, n)
			linger(ctx, time.Duration(1+draws(w.seed, name).IntN(50))*time.Millisecond)
		}
		w.journal.write(line{At: called, Do: name, Key: t.key, Also: t.also(), Kind: t.kind, Request: t.id})
		answer, replayed, err := w.request(context.WithValue(context.WithoutCancel(ctx), doKey{}, doing{do: name, key: t.key, begins: true}), t, name)
		l := returnedBy(err)
		l.Do, l.Key, l.Answer = name, t.key, answer
		if replayed {
			l.Result = duplicate
		}
		w.journal.write(l)
		if l.Result == done || l.Result == duplicate || ctx.Err() != nil {
			return
		}
	}
}

// requests checks that each request has taken effect once, that all who got an answer got the same, and
// that no commit was reported as lost which is there. It returns how many requests there were.
func (e *effects) requests(all []Tally, services []Service) int {
	made := make(map[int64]*Service)
	for i := range services {
		s := &services[i]
		if other := made[s.Request]; other != nil {
			e.duplicates++
			e.t.Errorf("request %d has taken effect twice: by %s and %s", s.Request, other.By, s.By)
		}
		made[s.Request] = s
	}
	for _, y := range all {
		e.counter(keyOf(tallies, y.ID), y.N, int64(y.Version))
	}
	asked := make(map[int64]bool)
	for _, c := range firsts(e.h.calls) {
		if c.request == 0 {
			continue
		}
		asked[c.request] = true
		e.request(c, made[c.request])
	}
	for id, s := range made {
		if !asked[id] {
			e.t.Errorf("request %d, which nobody made, has taken effect by %s", id, s.By)
		}
	}
	for worker, n := range e.h.commitsLost {
		if n > 0 {
			e.t.Errorf("%s has reported %d commits of requests as lost that are there", worker, n)
		}
	}
	return len(asked)
}

// request compares what a call returned with what its request did.
func (e *effects) request(c *call, s *Service) {
	mine := s != nil && s.By == c.name
	switch {
	case c.result == done && !mine && e.h.toldUndone(c):
		e.t.Logf("lost by the database, and told:\n%s", c)
	case c.result == done && !mine:
		e.missing++
		e.t.Errorf("what a request did is not there:\n%s", c)
	case c.result != done && mine && c.rolledBack():
		e.duplicates++
		e.t.Errorf("what a request did that was not done is there:\n%s", c)
	case c.result == duplicate && s == nil:
		e.t.Errorf("a repeat of a request that did nothing:\n%s", c)
	case strings.HasPrefix(c.kind, "once") && (c.result == done || c.result == duplicate) && s != nil && c.answer != s.answer():
		e.t.Errorf("the answer is %q, not %q:\n%s", c.answer, s.answer(), c)
	}
}

// toldUndone reports whether an event of the worker tells that the database has lost a commit of a
// request, and no other missing one is that.
func (h *history) toldUndone(c *call) bool {
	if h.commitsLost[c.worker] == 0 {
		return false
	}
	h.commitsLost[c.worker]--
	for _, leg := range c.legs {
		leg.undone = true
	}
	return true
}
