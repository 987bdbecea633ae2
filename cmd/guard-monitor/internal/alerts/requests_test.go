package alerts_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belaygo/belay/internal/ingest"
	"github.com/belaygo/belay/internal/testmetric"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/internal/wait"
	"github.com/belaygo/belay/notify"
)

func serverKilled(s *stage) account {
	p := s.monitor("")
	r := s.report(s.db)
	s.load(200, r)
	loaded := make(chan struct{})
	go func() {
		defer close(loaded)
		s.load(600, r)
	}()
	for range 3 {
		n := s.ledger.received(s.t)
		testwait.Until(s.t, "the monitor takes events", func() bool { return s.ledger.received(s.t) > n })
		p.Kill()
		p = s.monitor("")
	}
	<-loaded
	s.load(200, r)
	return s.settle(r)
}

// serverAway has a whole run without a monitor. Its process ends with events stored; the
// next one sends them.
func serverAway(s *stage) account {
	r := s.report(s.db)
	s.load(500, r)
	if r.end(time.Second) {
		s.t.Error("drained without a monitor")
	}
	s.reading()
	return s.settle(s.report(s.db))
}

// answersLost drops answers: what the monitor has stored is posted again.
func answersLost(s *stage) account {
	s.reading()
	r := s.report(s.db)
	s.load(100, r)
	s.link.become(deaf)
	s.load(200, r)
	testwait.Until(s.t, "several answers were lost", func() bool { return s.link.drops() > 2 })
	s.link.become(sound)
	a := s.settle(r)
	if a.received <= a.taken {
		s.t.Errorf("%d deliveries of %d events: none came again", a.received, a.taken)
	}
	return a
}

func cutInTheBody(s *stage) account {
	s.reading()
	r := s.report(s.db)
	s.load(100, r)
	s.link.become(cutting)
	s.load(200, r)
	testwait.Until(s.t, "several requests were cut", func() bool { return s.link.drops() > 2 })
	s.link.become(sound)
	return s.settle(r)
}

// slowServer has the monitor store some events when their reporter no longer waits.
func slowServer(s *stage) account {
	var slow atomic.Int32
	slow.Store(3)
	r := s.report(s.db)
	s.serve(token, func(ctx context.Context, ev notify.Event) (bool, error) {
		if slow.Add(-1) >= 0 {
			testwait.Until(s.t, "its reporter has given up", func() bool { return r.count("failed") >= float64(3-slow.Load()) })
		}
		return s.ledger.store(ctx, ev)
	})
	s.load(200, r)
	a := s.settle(r)
	if a.received <= a.taken {
		s.t.Errorf("%d deliveries of %d events: none came again", a.received, a.taken)
	}
	return a
}

// overloaded has other senders take all the room that there is.
func overloaded(s *stage) account {
	const room = 64
	var inside atomic.Int32
	release := make(chan struct{})
	addr, _ := s.serve(token, func(ctx context.Context, ev notify.Event) (bool, error) {
		inside.Add(1)
		<-release
		return s.ledger.store(ctx, ev)
	})
	var posts sync.WaitGroup
	for n := range room {
		posts.Go(func() { s.post(addr, others[n%len(others)]) })
	}
	testwait.Until(s.t, "there is no room", func() bool { return inside.Load() == room })
	r := s.report(s.db)
	s.load(200, r)
	testwait.Until(s.t, "events are rejected", func() bool { return r.count("busy") > 1 })
	close(release)
	posts.Wait()
	return s.settle(r)
}

// post posts one event past the link, as another sender does.
func (s *stage) post(addr, token string) {
	ev := newEvent()
	body, err := ev.MarshalJSON()
	if err != nil {
		s.t.Error(err)
		return
	}
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, "http://"+addr+ingest.Path, strings.NewReader(string(body)))
	if err != nil {
		s.t.Error(err)
		return
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Close = true // leave no idle connection behind
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Error(err)
		return
	}
	defer res.Body.Close()
	switch res.StatusCode {
	case http.StatusAccepted:
		s.took(ev.ID)
	case http.StatusTooManyRequests: // a request before it may not have left yet
		if wait.Sleep(s.t.Context(), 10*time.Millisecond, nil) == nil {
			s.post(addr, token)
		}
	default:
		s.t.Errorf("another sender got %s", res.Status)
	}
}

// storeFails has the store take nothing for a while, as on a full disk.
func storeFails(s *stage) account {
	var full atomic.Bool
	s.serve(token, func(ctx context.Context, ev notify.Event) (bool, error) {
		if full.Load() {
			return false, errors.New("disk full")
		}
		return s.ledger.store(ctx, ev)
	})
	r := s.report(s.db)
	s.load(100, r)
	full.Store(true)
	s.load(200, r)
	testwait.Until(s.t, "the store has failed", func() bool { return r.count("busy") > 0 })
	full.Store(false)
	return s.settle(r)
}

// tokenRefused has a monitor whose settings lack the token of the reporter.
func tokenRefused(s *stage) account {
	_, stop := s.serve("a-token-of-somebody-else", s.ledger.store)
	r := s.report(s.db)
	s.load(200, r)
	testwait.Until(s.t, "the token is refused", func() bool { return r.count("unauthorized") > 1 })
	if n := testmetric.Sum(s.t, r.Outbox, "belay_outbox_published_total"); n != 0 {
		s.t.Errorf("%v events count as published", n)
	}
	stop()
	s.reading()
	return s.settle(r)
}
