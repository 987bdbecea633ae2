package shop

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/httpguard"
	"github.com/belaygo/belay/inbox"
	"github.com/belaygo/belay/once"
)

// Requests serves requests that have an id, in several ways. Each inserts an order whose
// number is the id, but those that refuse.
type Requests struct {
	service *Service
	handler http.Handler
	inbox   *inbox.Inbox
}

// Requests returns the service's ways to serve requests, and creates their tables. Close
// of the service drops them.
func (s *Service) Requests(ctx context.Context) (*Requests, error) {
	db, err := OpenGorm(s.pool)
	if err != nil {
		return nil, err
	}
	if err := once.Migrate(ctx, db); err != nil {
		return nil, err
	}
	s.Later(func(ctx context.Context) error {
		return db.WithContext(ctx).Exec("DROP TABLE belay_once, belay_answer").Error
	})
	r := &Requests{service: s}
	if r.inbox, err = inbox.New(s.belay.Guard, inbox.Config{Consumer: "orders"}); err != nil {
		return nil, err
	}
	guarded, err := httpguard.New(s.belay.Guard, httpguard.Config{
		Principal: func(*http.Request) (string, error) { return "customer", nil },
	})
	if err != nil {
		return nil, err
	}
	r.handler = guarded(http.HandlerFunc(postOrder))
	return r, nil
}

// For inserts an order for a request, without an answer.
func (r *Requests) For(ctx context.Context, no string) Answer {
	return judge(r.service.belay.Guard.Apply(ctx, Belay.Key(no), guard.Insert(newOrder(no)), guard.For(request("order", no))))
}

// Once inserts an order, and stores it as the answer.
func (r *Requests) Once(ctx context.Context, no string) Answer { return r.service.Once(ctx, no) }

// OnceUnmarked is Once without Redis' memory of what is done.
func (r *Requests) OnceUnmarked(ctx context.Context, no string) Answer {
	return r.service.Once(ctx, no, guard.Remember(0))
}

// Refuse refuses a request before anything is written.
func (r *Requests) Refuse(ctx context.Context, no string) Answer {
	return r.refuse(ctx, no, func(*gorm.DB) error { return nil })
}

// RefuseLate refuses a request for which an order has been inserted.
func (r *Requests) RefuseLate(ctx context.Context, no string) Answer {
	return r.refuse(ctx, no, func(tx *gorm.DB) error { return tx.Create(newOrder(no)).Error })
}

func (r *Requests) refuse(ctx context.Context, no string, first func(*gorm.DB) error) Answer {
	_, err := guard.Once(ctx, r.service.belay.Guard, request("refuse", no), func(ctx context.Context, tx *gorm.DB) (string, error) {
		if err := first(tx.WithContext(ctx)); err != nil {
			return "", err
		}
		return "", guard.Refuse("sold out")
	})
	return judge(err)
}

// HTTP serves a request with an Idempotency-Key, without a network.
func (r *Requests) HTTP(ctx context.Context, no string) Answer {
	req := httptest.NewRequestWithContext(ctx, http.MethodPost, "/orders", strings.NewReader(no))
	req.Header.Set("Idempotency-Key", no)
	w := httptest.NewRecorder()
	if r.handler.ServeHTTP(w, req); w.Code != http.StatusCreated {
		return Answer{Result: Failed, Error: fmt.Sprintf("%d %s", w.Code, w.Body)}
	}
	return Answer{Result: Done}
}

func postOrder(w http.ResponseWriter, r *http.Request) {
	if err := guard.Tx(r.Context()).Create(newOrder(r.Header.Get("Idempotency-Key"))).Error; err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write([]byte(`{"item": 7, "amount": 1, "paid": false}`))
}

// Message handles a message.
func (r *Requests) Message(ctx context.Context, no string) Answer { return r.message(ctx, no, false) }

// MessageAgain handles a message that is redelivered.
func (r *Requests) MessageAgain(ctx context.Context, no string) Answer {
	return r.message(ctx, no, true)
}

func (r *Requests) message(ctx context.Context, no string, again bool) Answer {
	m := inbox.Message{ID: no, Body: []byte(no), Redelivered: again}
	decision, err := r.inbox.Handle(ctx, m, func(ctx context.Context, tx *gorm.DB) error {
		return tx.WithContext(ctx).Create(newOrder(no)).Error
	})
	if decision == inbox.Ack {
		return Answer{Result: Done}
	}
	return judge(err)
}
