package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/once"
)

// Till counts payments: Held are reserved, N are paid.
type Till struct {
	ID      int64
	Held    int64
	N       int64
	Version dbguard.Version
}

// Payment is what a guard.Call reserves and settles. No index keeps it from being reserved twice.
type Payment struct {
	ID      uint
	No      int64 `gorm:"index"`
	Till    int64
	State   string `gorm:"size:16"`
	Receipt string `gorm:"size:64"`
}

// The states of a Payment.
const (
	reservedOnly = "reserved"
	paid         = "paid"
	declined     = "declined"
)

// Times of a payment. The provider remembers an id for longer than a run of Do that has begun in
// time can take, though its process is paused. callEnd is short, as four of it are part of a lease.
const (
	callTimeout = time.Second
	callUntil   = 15 * time.Second
	callEnd     = 500 * time.Millisecond
	remembered  = callUntil + callTimeout + ttl + 25*time.Second
)

// paymentEach is how long a payment is the newest.
const paymentEach = 250 * time.Millisecond

func tillOf(no int64) int64 { return 1 + no%rowsOf[tills] }

// paymentRequest is the request of a payment.
func paymentRequest(no int64) once.Request {
	return once.Request{Operation: "pay", Scope: once.Anyone, ID: fmt.Sprint(no), Print: once.PrintOf(1, fmt.Append(nil, no))}
}

// paying is a call of a provider.
type paying struct{ provider string } // its address

func (p paying) call() guard.Call[int64, string, string] {
	return guard.Call[int64, string, string]{
		Name: "pay", Timeout: callTimeout, Until: callUntil,
		Reserve: func(ctx context.Context, tx *gorm.DB, no int64) error {
			if err := hold(no, 1, 0).Run(ctx, tx); err != nil {
				return err
			}
			return tx.Create(&Payment{No: no, Till: tillOf(no), State: reservedOnly}).Error
		},
		Do: p.charge,
		Settle: func(ctx context.Context, tx *gorm.DB, no int64, o guard.Outcome[string]) (string, error) {
			state, made := paid, int64(1)
			if o.Refused {
				state, made = declined, 0
			}
			if err := hold(no, -1, made).Run(ctx, tx); err != nil {
				return "", err
			}
			res := tx.Model(&Payment{}).Where("no = ? AND state = ?", no, reservedOnly).Updates(map[string]any{"state": state, "receipt": o.Value})
			if res.Error != nil || res.RowsAffected != 1 {
				return "", fmt.Errorf("%d rows of payment %d to settle: %w", res.RowsAffected, no, res.Error)
			}
			return answerOf(state, o.Value), nil
		},
	}
}

// answerOf is what everybody gets who asks for a payment.
func answerOf(state, receipt string) string { return state + ": " + receipt }

// hold changes the till of a payment.
func hold(no, held, made int64) guard.Change {
	return guard.Update(&Till{ID: tillOf(no)}, func(t *Till) error {
		t.Held += held
		t.N += made
		return nil
	})
}

// providerClient has no connections of its own that a pause could break.
var providerClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// charge calls the provider. Only a 402 is its last word.
func (p paying) charge(ctx context.Context, id string, no int64) (string, error) {
	form := url.Values{"no": {fmt.Sprint(no)}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+p.provider+"/charges", strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Idempotency-Key", id)
	res, err := providerClient.Do(r)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return "", err
	case res.StatusCode == http.StatusOK:
		return string(body), nil
	case res.StatusCode == http.StatusPaymentRequired:
		return "", guard.Refuse(string(body))
	}
	return "", errors.New(res.Status)
}

// A reply is what a client got that asked for a payment.
type reply struct {
	No     int64
	Name   string // of the try
	Result string // done, duplicate, undecided, pending, busy or another
	Answer string // if it is done or duplicate

	asked, at int64 // 0 at the end
}

// A try is what a client of a worker asks for, with or without a reply.
type try struct {
	No      int64
	worker  string
	asked   int64
	replied int64 // or its worker was killed
}

// callLease is how long nobody else calls, from before the call on.
const callLease = callTimeout + 4*callEnd

// mayBeCalling reports whether the try may have begun its call before all leases ended, and may have been
// at work when a client was told that its payment is undecided. Then it settles what the provider has
// answered, or stores it, as soon as its process goes on.
func (t try) mayBeCalling(told reply) bool {
	return t.asked > 0 && t.asked+int64(callLease) <= told.at && t.replied > told.asked
}

// Results of a payment beside those of Do.
const (
	pending   = "pending"
	undecided = "undecided"
)

// settled reports whether the client got the answer of the payment.
func (r reply) settled() bool { return r.Result == done || r.Result == duplicate }

// pay asks for a payment once.
func (p paying) pay(ctx context.Context, g *guard.Guard, no int64, name string) reply {
	key := keyOf(tills, tillOf(no))
	a, err := p.call().Run(sideOf(ctx, name), g, paymentRequest(no), no, guard.Also(key, &Till{ID: tillOf(no)}), guard.Wait(time.Second), guard.Retries(2))
	r := reply{No: no, Name: name, Result: result(err), Answer: a.Value}
	open, isOpen := errors.AsType[*guard.PendingError](err)
	switch {
	case err == nil && a.Replayed:
		r.Result = duplicate
	case isOpen && open.Undecided:
		r.Result = undecided
	case isOpen:
		r.Result = pending
	}
	return r
}

// payAgain is how often a client asks for a payment.
const payAgain = 20

// pay is a client: it asks for a payment until that is settled or undecided.
func (w *worker) pay(ctx context.Context, t task, do string) {
	p := paying{os.Getenv(providerName)}
	for n := range payAgain {
		name := fmt.Sprintf("%s.again%d", do, n)
		if n > 0 {
			linger(ctx, time.Duration(1+draws(w.seed, name).IntN(200))*time.Millisecond)
		}
		w.journal.write(line{At: sought, Do: name, Request: t.id})
		r := p.pay(context.WithoutCancel(ctx), w.sideGuard, t.id, name)
		w.journal.write(line{At: replied, Do: name, Request: r.No, Result: r.Result, Answer: r.Answer})
		if r.settled() || r.Result == undecided || ctx.Err() != nil {
			return
		}
	}
}
