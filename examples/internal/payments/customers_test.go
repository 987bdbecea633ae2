package payments_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belaygo/belay/internal/wait"
)

const (
	// customersAtOnce is how many payments are requested at a time.
	customersAtOnce = 12
	// patience of a customer with a service.
	patience = 3 * time.Second
)

// client keeps no connection, since the processes die.
var client = &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}

// undecided is the last answer of a payment whose outcome a person has to find out.
const undecided = "undecided"

// A payment is what a customer wants. One customer has it at a time.
type payment struct {
	no     string
	item   int
	cents  int
	hasty  bool   // the customer gives up when the first answer is not the last
	answer string // the last one; "" if there is none
}

// offer makes payments that customers are to request.
func (s *stage) offer(payments int) {
	run := rand.Int64N(1 << 40)
	for n := range payments {
		s.payments = append(s.payments, &payment{
			no: fmt.Sprintf("%x-%d", run, n), item: 1 + n%items, cents: 100 + n, hasty: n%20 == 9,
		})
	}
	s.open, s.ended = make(chan *payment, payments), make(chan struct{})
	s.left.Store(int64(payments))
}

// admit lets customers request all payments below a number.
func (s *stage) admit(below int) {
	for ; s.admitted < below; s.admitted++ {
		s.open <- s.payments[s.admitted]
	}
}

// pay lets customers request the payments that are admitted until each has its last answer. A payment
// that has not waits behind the others.
func (s *stage) pay(ctx context.Context) {
	for range customersAtOnce {
		s.customers.Go(func() {
			for {
				select {
				case p := <-s.open:
					if s.request(ctx, p); p.answer == "" && !p.hasty {
						s.open <- p
						_ = wait.Sleep(ctx, 50*time.Millisecond, nil)
					} else if s.left.Add(-1) == 0 {
						close(s.ended)
					}
				case <-s.ended:
					return
				case <-ctx.Done():
					return
				}
			}
		})
	}
}

// allEnded reports whether no customer waits any more.
func (s *stage) allEnded() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// request requests a payment of one service. Its answer is the same each time, if there is one.
func (s *stage) request(ctx context.Context, p *payment) {
	form := url.Values{"no": {p.no}, "item": {strconv.Itoa(p.item)}, "cents": {strconv.Itoa(p.cents)}}
	at := "http://" + *s.services[rand.IntN(len(s.services))].addr.Load()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(form.Encode()))
	if err != nil {
		s.t.Error(err)
		return
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer := ""
	if resp, err := client.Do(r); err == nil {
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		switch {
		case err == nil && resp.StatusCode == http.StatusOK:
			answer = string(body)
		case resp.StatusCode == http.StatusInternalServerError:
			answer = undecided
		}
	}
	switch {
	case answer == "":
		s.refused.Add(1)
	case p.answer == "":
		if p.answer = answer; answer == undecided {
			s.undecided.Add(1)
		}
	case p.answer != answer:
		s.t.Errorf("payment %s is answered by %q, and then by %q", p.no, p.answer, answer)
	}
}

// settle requests what has no answer until it has one, lets the provider forget all ids, requests all
// payments again, and ends the services.
func (s *stage) settle() {
	s.t.Helper()
	s.again(func(p *payment) bool { return p.answer == "" })
	s.order("/forget", nil)
	s.again(func(*payment) bool { return true })
	for _, i := range s.services {
		s.end(i)
	}
}

// again requests payments until each is answered, as it was before.
func (s *stage) again(which func(*payment) bool) {
	s.t.Helper()
	copies := make(map[*payment]*payment)
	for _, p := range s.payments {
		if which(p) {
			copies[p] = &payment{no: p.no, item: p.item, cents: p.cents}
		}
	}
	if len(copies) == 0 {
		return
	}
	s.inParallel(slices.Collect(maps.Values(copies)))
	for p, again := range copies {
		if p.answer = cmp.Or(p.answer, again.answer); p.answer != again.answer {
			s.t.Errorf("payment %s was answered by %q, and then by %q", p.no, p.answer, again.answer)
		}
	}
}

// inParallel requests payments until each has an answer.
func (s *stage) inParallel(due []*payment) {
	s.t.Helper()
	s.open, s.ended = make(chan *payment, len(due)), make(chan struct{})
	s.left.Store(int64(len(due)))
	for _, p := range due {
		s.open <- p
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer s.customers.Wait()
	defer cancel()
	s.pay(ctx)
	s.until("each payment has an answer", s.allEnded)
}
