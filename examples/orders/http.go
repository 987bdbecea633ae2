package main

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/httpguard"
)

// Order is created once and paid once.
type Order struct {
	ID      int64           `json:"id"`
	Cents   int64           `json:"cents"`
	PaidAt  *time.Time      `json:"paid_at"`
	Version dbguard.Version `json:"-"`
}

// shop serves customers' requests. It may run in many instances.
type shop struct {
	db    *gorm.DB
	guard *guard.Guard
}

// patience is how long a request waits for one that it must not overtake: a customer
// who clicks twice wants to see the order, not an error.
const patience = 10 * time.Second

// handler answers a repeat, which has the Idempotency-Key of the first request, with
// the first answer.
func (s *shop) handler() (http.Handler, error) {
	guarded, err := httpguard.New(s.guard, httpguard.Config{Principal: customer, Keys: keys, Wait: patience})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /orders", guarded(http.HandlerFunc(postOrder)))
	mux.Handle("POST /orders/{id}/payment", guarded(http.HandlerFunc(s.postPayment)))
	mux.HandleFunc("GET /orders/{id}", s.getOrder)
	return mux, nil
}

// customer returns the customer of a request, who owns its Idempotency-Key. A real shop
// checks the password, before httpguard.
func customer(r *http.Request) (string, error) {
	user, _, _ := r.BasicAuth()
	if user == "" {
		return "anonymous", nil
	}
	return "user:" + user, nil
}

// keys returns the lock key of the order that a request changes: two payments of one order
// may have different Idempotency-Keys.
func keys(r *http.Request, _ []byte) ([]string, error) {
	if r.PathValue("id") == "" {
		return nil, nil // a new order
	}
	o, err := orderOf(r)
	return []string{o.key()}, err
}

func orderOf(r *http.Request) (*Order, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	return &Order{ID: id}, err
}

func (o *Order) key() string { return "order:" + strconv.FormatInt(o.ID, 10) }

// postOrder creates an order in the transaction that stores the answer.
func postOrder(w http.ResponseWriter, r *http.Request) {
	var o Order
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil || o.Cents <= 0 {
		http.Error(w, `want {"cents": more than 0}`, http.StatusBadRequest)
		return
	}
	o = Order{Cents: o.Cents}
	err := guard.Tx(r.Context()).Create(&o).Error
	reply(w, http.StatusCreated, &o, err)
}

var errPaid = errors.New("order is paid")

// postPayment marks an order as paid. If its lock fails, its version lets one of two
// payments through.
func (s *shop) postPayment(w http.ResponseWriter, r *http.Request) {
	o, _ := orderOf(r)
	err := s.guard.Apply(r.Context(), o.key(), guard.Update(o, func(o *Order) error {
		if o.PaidAt != nil {
			return errPaid
		}
		now := time.Now().UTC().Truncate(time.Millisecond) // which every database keeps
		o.PaidAt = &now
		return nil
	}), guard.Wait(patience))
	reply(w, http.StatusOK, o, err)
}

func (s *shop) getOrder(w http.ResponseWriter, r *http.Request) {
	o, err := orderOf(r)
	if err == nil {
		err = s.db.WithContext(r.Context()).Take(o).Error
	}
	reply(w, http.StatusOK, o, err)
}

// reply answers. With a status from 400 on the transaction is rolled back and the answer
// is not stored: the request may be sent again.
func reply(w http.ResponseWriter, status int, o *Order, err error) {
	switch {
	case err == nil:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(o)
	case errors.Is(err, errPaid):
		http.Error(w, err.Error(), http.StatusConflict)
	case errors.Is(err, gorm.ErrRecordNotFound), errors.Is(err, strconv.ErrSyntax), errors.Is(err, strconv.ErrRange):
		http.Error(w, "no such order", http.StatusNotFound)
	default: // an error of Belay's, or of the database
		if httpguard.Status(err) >= http.StatusInternalServerError {
			slog.Error("request failed", "error", err)
		}
		httpguard.Error(w, err)
	}
}
