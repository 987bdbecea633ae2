package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/belaygo/belay/internal/wait"
)

// customersAtOnce is how many sales are requested at a time.
const customersAtOnce = 12

// patience of a customer with one instance.
const patience = 3 * time.Second

// admit lets customers come for all sales below a number.
func (s *stage) admit(below int) {
	for ; s.admitted < below; s.admitted++ {
		s.open <- s.admitted
	}
}

// sell lets customers request the sales that are admitted until each is answered. A sale that is not,
// since a process that is paused has its item, waits behind the others.
func (s *stage) sell(ctx context.Context, sales int) {
	s.open, s.sold = make(chan int, sales), make(chan struct{})
	for range customersAtOnce {
		s.customers.Go(func() {
			for {
				select {
				case n := <-s.open:
					if !s.request(ctx, n) {
						s.open <- n
						_ = wait.Sleep(ctx, 50*time.Millisecond, nil)
					} else if s.answered.Add(1) == int64(sales) {
						close(s.sold)
					}
				case <-s.sold:
					return
				case <-ctx.Done():
					return
				}
			}
		})
	}
}

// allSold reports whether all sales are answered.
func (s *stage) allSold() bool {
	select {
	case <-s.sold:
		return true
	default:
		return false
	}
}

// client keeps no connection, since the processes die.
var client = &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}

// request requests a sale of one instance, and reports whether it was answered.
func (s *stage) request(ctx context.Context, n int) bool {
	form := url.Values{"no": {fmt.Sprintf("A-%d", n)}, "item": {fmt.Sprint(s.firstItem + int64(n)%s.items)}}
	at := "http://" + *s.shops[rand.IntN(len(s.shops))].addr.Load() + "/sales"
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(form.Encode()))
	if err != nil {
		return false
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := client.Do(r)
	if err == nil {
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return true
		}
	}
	s.refused.Add(1)
	return false
}
