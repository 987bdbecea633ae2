package intake

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/lograte"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
	"github.com/belaygo/belay/internal/cloudevent"
	"github.com/belaygo/belay/internal/heartbeat"
	"github.com/belaygo/belay/internal/ingest"
	"github.com/belaygo/belay/notify"
)

const (
	// endpointSlots is how many requests are served at a time. senderSlots is how many of one
	// sender are, so that no sender takes them all.
	endpointSlots, senderSlots = 64, 32
	// afterBusy and afterFailure are what senders are asked to wait.
	afterBusy, afterFailure = time.Second, 5 * time.Second
	// failureLasts is how long the store counts as failing after it has failed last:
	// longer than any sender pauses.
	failureLasts = 2 * time.Minute
	// deafness is how long silence proves nothing after a heartbeat was not stored, or a
	// request was rejected that may have been one.
	deafness = 10 * time.Second
)

// An Endpoint takes events over HTTP, as package notify/webhook posts them. It answers
// that it has an event only after Take has returned nil. Its methods are safe for
// concurrent use; it is a prometheus.Collector.
type Endpoint struct {
	*endpointMetrics

	cfg     EndpointConfig
	senders []*quota
	slots   chan struct{}

	strangers lograte.Limit // lines about requests without a right token
	unstored  lograte.Limit // lines about events that the store does not take

	mu       sync.Mutex
	failure  error // of Take, when it was called last
	failedAt time.Time
	deafAt   time.Time
}

// NewEndpoint returns an Endpoint.
func NewEndpoint(cfg EndpointConfig) (*Endpoint, error) {
	if cfg.Take == nil || cfg.Heartbeat == nil {
		return nil, errors.New("intake: Take or Heartbeat is nil")
	}
	cfg.Logger = cfg.logger()
	e := &Endpoint{cfg: cfg, endpointMetrics: newEndpointMetrics(), slots: make(chan struct{}, endpointSlots)}
	for _, s := range cfg.Senders {
		sum, wrong := sha256.Sum256([]byte(s.Token)), ingest.CheckToken(s.Token)
		switch {
		case wrong != nil:
			return nil, fmt.Errorf("the token of %s %w", s.Name, wrong)
		case slices.ContainsFunc(e.senders, func(q *quota) bool { return q.token == sum }):
			return nil, fmt.Errorf("the token of %s is that of another entry", s.Name)
		case len(s.Services) == 0:
			return nil, fmt.Errorf("%s names no service", s.Name)
		}
		e.senders = append(e.senders, newQuota(s, sum))
		e.limited.WithLabelValues(s.Name)
	}
	return e, nil
}

// ServeHTTP answers one request, whatever its path: a GET is a check, all else brings an
// event. Requests without a right token cost nothing but the comparison.
func (e *Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		e.check(w, r)
		return
	}
	sender := e.sender(r)
	if sender == nil {
		unauthorized(w, ingest.Answer{Error: e.refuseStranger(r)})
		return
	}
	select {
	case sender.slots <- struct{}{}:
		defer func() { <-sender.slots }()
	default:
		sender.reject()
		e.limit(w, r, sender, afterBusy, "too many requests of one sender at a time")
		return
	}
	select {
	case e.slots <- struct{}{}:
		defer func() { <-e.slots }()
	default:
		e.setDeaf()
		e.count("busy")
		askToWait(w, http.StatusTooManyRequests, afterBusy, "too many events at a time")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, ingest.MaxBody))
	_, large := errors.AsType[*http.MaxBytesError](err)
	if err != nil && !large { // the sender has gone, or is too slow
		e.broken(w, "the request was not read to its end")
		return
	}
	e.judge(w, r, sender, body, large)
}

// sender returns whose token the request has, nil if it is nobody's.
func (e *Endpoint) sender(r *http.Request) (found *quota) {
	kind, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	sum := sha256.Sum256([]byte(strings.TrimSpace(token)))
	for _, q := range e.senders {
		if subtle.ConstantTimeCompare(sum[:], q.token[:]) == 1 && strings.EqualFold(kind, "Bearer") {
			found = q
		}
	}
	return found
}

// judge takes a request's body as an event or a heartbeat, unless its sender is over its limits. If
// large is set, the body is longer than ingest.MaxBody.
func (e *Endpoint) judge(w http.ResponseWriter, r *http.Request, sender *quota, body []byte, large bool) {
	var ev notify.Event
	reason := ev.UnmarshalJSON(body)
	if reason != nil && isHeartbeat(body) {
		e.judgeHeartbeat(w, r, sender, body)
		return
	}
	if after := sender.events.spend(time.Now()); after > 0 {
		e.limit(w, r, sender, after, "too many events of one sender")
		return
	}
	switch {
	case large:
		e.reject(w, r, sender, http.StatusRequestEntityTooLarge, fmt.Errorf("the event has more than %d bytes", ingest.MaxBody))
	case reason != nil:
		e.reject(w, r, sender, http.StatusBadRequest, reason)
	case !e.refused(w, r, sender, ev.Service):
		e.store(w, r, sender, ev, body)
	}
}

// isHeartbeat reports whether a body that is no event is meant as a heartbeat. One that is cut
// is no JSON.
func isHeartbeat(body []byte) bool {
	var kind struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(body, &kind) // what is no JSON is no heartbeat
	return kind.Type == cloudevent.Heartbeat
}

// judgeHeartbeat takes a body as a heartbeat, unless its sender is over its limits.
func (e *Endpoint) judgeHeartbeat(w http.ResponseWriter, r *http.Request, sender *quota, body []byte) {
	if after := sender.heartbeats.spend(time.Now()); after > 0 {
		sender.reject()
		e.limit(w, r, sender, after, "too many heartbeats of one sender")
		return
	}
	var h heartbeat.Heartbeat
	if err := h.UnmarshalJSON(body); err != nil {
		e.reject(w, r, sender, http.StatusBadRequest, err)
		return
	}
	if !e.refused(w, r, sender, h.Service) {
		e.hear(w, r, sender, h)
	}
}

// hear answers for a heartbeat once it is stored.
func (e *Endpoint) hear(w http.ResponseWriter, r *http.Request, sender *quota, h heartbeat.Heartbeat) {
	err := e.cfg.Heartbeat(r.Context(), h, sender.Name)
	if e.rejected(w, r, sender, err) {
		return
	}
	if err != nil {
		e.setDeaf()
		e.count("failed")
		askToWait(w, http.StatusServiceUnavailable, afterFailure, "the store does not take the heartbeat; the monitor's log says why")
		return
	}
	e.count("heartbeat")
	answer(w, http.StatusAccepted, ingest.Answer{Taken: h.ID})
}

// store answers for an event once it is stored.
func (e *Endpoint) store(w http.ResponseWriter, r *http.Request, sender *quota, ev notify.Event, body []byte) {
	added, err := e.cfg.Take(r.Context(), ev, body, sender.Name)
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil { // the sender has gone
		e.broken(w, "the sender has gone, and the event is not stored")
		return
	}
	if e.rejected(w, r, sender, err) {
		return
	}
	e.setFailure(err)
	switch {
	case err != nil:
		e.count("failed")
		e.unstored.Warn(r.Context(), e.cfg.Logger, "event is not stored", slog.String("event_id", ev.ID), slog.Any("error", err))
		askToWait(w, http.StatusServiceUnavailable, afterFailure, "the store does not take the event; the monitor's log says why")
	case added:
		e.count("stored")
		answer(w, http.StatusAccepted, ingest.Answer{Taken: ev.ID})
	default:
		e.count("repeated")
		answer(w, http.StatusOK, ingest.Answer{Taken: ev.ID})
	}
}

// rejected answers what the store will not take from this sender, though it may from others.
func (e *Endpoint) rejected(w http.ResponseWriter, r *http.Request, sender *quota, err error) bool {
	if !errors.Is(err, ErrReject) {
		return false
	}
	e.count("unauthorized")
	sender.lines.Warn(r.Context(), e.cfg.Logger, "an event or a heartbeat is refused",
		slog.String("sender", sender.Name), slog.Any("error", err))
	answer(w, http.StatusForbidden, ingest.Answer{Error: err.Error()})
	return true
}

// check answers whether an event of the service that the request names would be taken now.
func (e *Endpoint) check(w http.ResponseWriter, r *http.Request) {
	a := ingest.Answer{Service: r.URL.Query().Get(ingest.Service)}
	sender := e.sender(r)
	switch {
	case sender == nil:
		a.Error = e.refuseStranger(r)
		unauthorized(w, a)
	case !sender.speaksFor(a.Service):
		a.Error = e.refuse(r, sender, a.Service)
		answer(w, http.StatusForbidden, a)
	case e.Err() != nil:
		e.count("failed")
		a.Error = "the store takes nothing; the monitor's log says why"
		answer(w, http.StatusServiceUnavailable, a)
	default:
		e.count("checked")
		answer(w, http.StatusOK, a)
	}
}

// maxClaim is how many bytes of a service name are logged that the sender may have made up.
const maxClaim = 80

// refuseStranger returns the reason for a sender without a right token.
func (e *Endpoint) refuseStranger(r *http.Request) (reason string) {
	e.count("unauthorized")
	claimed := text.Clip(text.Line(r.URL.Query().Get(ingest.Service)), maxClaim)
	e.strangers.Warn(r.Context(), e.cfg.Logger, "an event is refused: no entry of the setting ingest has its token",
		slog.String("claimed_service", claimed), slog.String("remote", r.RemoteAddr))
	return "the token is none of the setting ingest"
}

// refuse returns the reason for a sender that does not speak for the service.
func (e *Endpoint) refuse(r *http.Request, sender *quota, service string) (reason string) {
	e.count("unauthorized")
	sender.lines.Warn(r.Context(), e.cfg.Logger, "an event is refused: its token is not for its service",
		slog.String("sender", sender.Name), slog.String("service", text.Clip(text.Line(service), maxClaim)))
	return fmt.Sprintf("the token of %s is not for the service %.80q: see its services in the setting ingest", sender.Name, service)
}

// refused answers a sender that does not speak for the service.
func (e *Endpoint) refused(w http.ResponseWriter, r *http.Request, sender *quota, service string) bool {
	if sender.speaksFor(service) {
		return false
	}
	answer(w, http.StatusForbidden, ingest.Answer{Error: e.refuse(r, sender, service)})
	return true
}

func unauthorized(w http.ResponseWriter, a ingest.Answer) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="guard-monitor"`)
	answer(w, http.StatusUnauthorized, a)
}

// limit rejects a request of a sender that is over its limits, and tells it when to retry.
func (e *Endpoint) limit(w http.ResponseWriter, r *http.Request, sender *quota, after time.Duration, reason string) {
	e.count("limited")
	e.limited.WithLabelValues(sender.Name).Inc()
	sender.lines.Warn(r.Context(), e.cfg.Logger, reason+": rejected with 429", slog.String("sender", sender.Name))
	askToWait(w, http.StatusTooManyRequests, after, reason)
}

// reject answers what can never be taken.
func (e *Endpoint) reject(w http.ResponseWriter, r *http.Request, sender *quota, code int, reason error) {
	e.count("rejected")
	sender.lines.Warn(r.Context(), e.cfg.Logger, "message is no event, and stays with its sender",
		slog.String("sender", sender.Name), slog.Any("error", reason))
	answer(w, code, ingest.Answer{Rejected: true, Error: reason.Error()})
}

// broken answers a sender that has gone, or half of it: without an answer, net/http would
// give it a 200.
func (e *Endpoint) broken(w http.ResponseWriter, reason string) {
	e.count("broken")
	answer(w, http.StatusRequestTimeout, ingest.Answer{Error: reason})
}

// askToWait asks for a pause, in whole seconds, and not for less than after.
func askToWait(w http.ResponseWriter, code int, after time.Duration, reason string) {
	w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(after.Seconds()))))
	answer(w, code, ingest.Answer{Error: reason})
}

func answer(w http.ResponseWriter, code int, a ingest.Answer) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(a) // the sender may have gone
}

func (e *Endpoint) setFailure(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failure, e.failedAt = err, time.Now()
}

func (e *Endpoint) setDeaf() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.deafAt = time.Now()
}

// Err returns nil while events are taken. If one could not be stored lately, and none
// since, the error matches ErrHandler.
func (e *Endpoint) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failure == nil || time.Since(e.failedAt) > failureLasts {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrHandler, e.failure)
}

// Listening reports whether all heartbeats that arrive are taken, except those that RejectedAt
// reports. While it returns false, the silence of a service proves nothing.
func (e *Endpoint) Listening() bool {
	e.mu.Lock()
	deaf := time.Since(e.deafAt) < deafness
	e.mu.Unlock()
	return !deaf && e.Err() == nil
}
