package main

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/lock"
)

func (s *shop) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", s.postOrder)
	mux.HandleFunc("POST /orders/{no}/payment", s.postPayment)
	mux.HandleFunc("GET /orders/{no}", s.getOrder)
	return mux
}

func (s *shop) postOrder(w http.ResponseWriter, r *http.Request) {
	var in struct {
		No    string `json:"no"`
		Cents int64  `json:"cents"`
	}
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&in)
	if err != nil || in.No == "" || len(in.No) > 64 || in.Cents <= 0 {
		http.Error(w, `want {"no": up to 64 bytes, "cents": more than 0}`, http.StatusBadRequest)
		return
	}
	o := &Order{No: in.No, Cents: in.Cents}
	switch err := s.create(r.Context(), o); {
	case err == nil:
		reply(w, http.StatusCreated, o)
	case errors.Is(err, guard.ErrDuplicate):
		s.repeat(w, r, o)
	default:
		refuse(w, err)
	}
}

// repeat answers a repeated order as the first one was answered.
func (s *shop) repeat(w http.ResponseWriter, r *http.Request, asked *Order) {
	first, err := s.find(r.Context(), asked.No)
	switch {
	case err != nil:
		refuse(w, err)
	case first.Cents != asked.Cents:
		http.Error(w, "the number belongs to another order", http.StatusConflict)
	default:
		reply(w, http.StatusOK, first)
	}
}

func (s *shop) postPayment(w http.ResponseWriter, r *http.Request) {
	o, err := s.pay(r.Context(), r.PathValue("no"))
	if err != nil && !errors.Is(err, errPaid) { // a repeat gets what the first one got
		refuse(w, err)
		return
	}
	reply(w, http.StatusOK, o)
}

func (s *shop) getOrder(w http.ResponseWriter, r *http.Request) {
	o, err := s.find(r.Context(), r.PathValue("no"))
	if err != nil {
		refuse(w, err)
		return
	}
	reply(w, http.StatusOK, o)
}

// refuse says what a client should do about an error of Do: wait a moment and
// ask again, look what became of it, or give up.
func refuse(w http.ResponseWriter, err error) {
	status := statusOf(err)
	switch status {
	case http.StatusConflict, http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	case http.StatusInternalServerError:
		slog.Error("request failed", "error", err)
	}
	http.Error(w, http.StatusText(status), status)
}

func statusOf(err error) int {
	switch {
	case errors.Is(err, lock.ErrInvalidKey): // from the order's number
		return http.StatusBadRequest
	case errors.Is(err, gorm.ErrRecordNotFound):
		return http.StatusNotFound
	case errors.Is(err, guard.ErrBusy), // another request is at it
		errors.Is(err, guard.ErrStale),
		errors.Is(err, guard.ErrIntercepted): // nothing was changed; asking again is safe
		return http.StatusConflict
	case errors.Is(err, guard.ErrLost), errors.Is(err, guard.ErrUnavailable):
		return http.StatusServiceUnavailable
	case errors.Is(err, guard.ErrUnknown): // it may have been done: look before asking again
		return http.StatusGatewayTimeout
	}
	return http.StatusInternalServerError
}

func reply(w http.ResponseWriter, status int, o *Order) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(o); err != nil {
		slog.Debug("client is gone", "error", err)
	}
}
