package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/internal/rabbit"
	"github.com/belaygo/belay/internal/wait"
)

// A supervisor is the one goroutine of a Publisher. It owns the session, and it
// answers each request that it takes. It connects at the first demand, and keeps a
// connection from then on.
type supervisor struct {
	dialer  *rabbit.Dialer
	timeout time.Duration // of one message
	logger  *slog.Logger
	metrics *metrics

	requests chan *request // taken in every state but dialling
	pings    chan ping     // taken in every state but dialling
	done     chan struct{}

	mu      sync.Mutex
	lastErr error // why there is no connection, if there is none

	// Of the goroutine alone:
	pause     wait.Backoff
	waiting   []ping // to be answered once connected
	unchecked bool   // the broker refuses the check that the queue exists
	anonymous bool   // the broker refuses the user of the URL as the sender
	absence   absence
}

func newSupervisor(cfg Config, dialer *rabbit.Dialer, m *metrics) *supervisor {
	return &supervisor{
		dialer:   dialer,
		timeout:  cfg.Timeout,
		logger:   cfg.Logger,
		metrics:  m,
		requests: make(chan *request),
		pings:    make(chan ping),
		done:     make(chan struct{}),
		pause:    wait.Backoff{Min: rabbit.MinPause, Max: rabbit.MaxPause},
	}
}

// send hands r over and waits for the answer, or for the end of r's context.
func (s *supervisor) send(r *request) error {
	select {
	case s.requests <- r:
	case <-r.ctx.Done():
		return s.unanswered(r.ctx)
	case <-s.done:
		return errClosed
	}
	select {
	case err := <-r.answer:
		return err
	case <-r.ctx.Done():
		return s.unanswered(r.ctx)
	}
}

// ping waits until there is a connection or ctx ends.
func (s *supervisor) ping(ctx context.Context) error {
	demand := ping{ctx: ctx, connected: make(chan struct{})}
	select {
	case s.pings <- demand:
	case <-ctx.Done():
		return s.unanswered(ctx)
	case <-s.done:
		return errClosed
	}
	select {
	case <-demand.connected:
		return nil
	case <-ctx.Done():
		return s.unanswered(ctx)
	case <-s.done:
		return errClosed
	}
}

// unanswered is the error when ctx ended first.
func (s *supervisor) unanswered(ctx context.Context) error {
	if reason := s.reason(); reason != nil {
		return fmt.Errorf("%w (%w)", reason, ctx.Err())
	}
	return fmt.Errorf("rabbitmq: %w", ctx.Err())
}

// reason returns the error of the connection, nil if there is one.
func (s *supervisor) reason() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastErr
}

func (s *supervisor) setLastErr(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastErr = err
}

func (s *supervisor) run(ctx context.Context) {
	defer close(s.done)
	demand := s.idle(ctx)
	for ctx.Err() == nil {
		err := background.Do(s.logger, "serve rabbitmq", func() error { return s.attempt(ctx, demand) })
		if ctx.Err() != nil {
			return
		}
		delay := s.pause.Next()
		s.setLastErr(fmt.Errorf("rabbitmq: not connected: %w", err))
		s.logger.Warn("not connected to rabbitmq", "addr", s.dialer.Addr(), "error", err, "retry_in", delay)
		demand = s.wait(ctx, delay)
	}
	s.refuse(ctx, demand, errClosed)
}

// attempt connects and serves, beginning with demand, until the session fails
// or ctx ends.
func (s *supervisor) attempt(ctx context.Context, demand *request) error {
	session, err := s.dialer.Dial(ctx, confirms)
	if err != nil {
		s.refuse(ctx, demand, err)
		return err
	}
	defer session.Close()
	s.opened()
	defer s.metrics.connected.Set(0)
	began := time.Now()
	err = s.serve(ctx, session, demand)
	if time.Since(began) > rabbit.MaxPause {
		s.pause.Reset()
	}
	return err
}

// idle waits for the first demand.
func (s *supervisor) idle(ctx context.Context) *request {
	select {
	case r := <-s.requests:
		return r
	case p := <-s.pings:
		s.remember(p)
	case <-ctx.Done():
	}
	return nil
}

// remember keeps a ping, and forgets those whose context has ended.
func (s *supervisor) remember(p ping) {
	s.waiting = slices.DeleteFunc(s.waiting, func(p ping) bool { return p.ctx.Err() != nil })
	s.waiting = append(s.waiting, p)
}

// wait pauses before the next attempt. A request or a ping cuts the pause short,
// but for a moment that keeps a row of them from becoming a row of attempts.
func (s *supervisor) wait(ctx context.Context, delay time.Duration) *request {
	floor := time.Now().Add(min(delay, rabbit.MinPause))
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return nil
	case r := <-s.requests:
		_ = wait.Sleep(ctx, time.Until(floor), r.ctx.Done())
		return r
	case p := <-s.pings:
		s.remember(p)
		_ = wait.Sleep(ctx, time.Until(floor), nil) // a probe that gives up is no reason to hurry
		return nil
	}
}

// refuse answers the request that demanded an attempt, and those that came
// during it.
func (s *supervisor) refuse(ctx context.Context, demand *request, err error) {
	if ctx.Err() != nil {
		err = errClosed
	} else {
		err = fmt.Errorf("rabbitmq: not connected: %w", err)
	}
	if demand != nil {
		demand.answer <- err
	}
	for {
		select {
		case r := <-s.requests:
			r.answer <- err
		default:
			return
		}
	}
}

// opened logs a new connection, and answers the pings.
func (s *supervisor) opened() {
	s.logger.Info("connected to rabbitmq", "addr", s.dialer.Addr())
	s.setLastErr(nil)
	s.metrics.connections.Inc()
	s.metrics.connected.Set(1)
	for _, p := range s.waiting {
		close(p.connected)
	}
	s.waiting = nil
}

// serve publishes on the session until it fails or ctx ends.
func (s *supervisor) serve(ctx context.Context, session *rabbit.Session, demand *request) error {
	lane := newLane(session, s.timeout, &s.absence)
	if demand != nil {
		if err := s.carry(ctx, lane, demand); err != nil {
			return err
		}
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case reason := <-session.Closed:
			return rabbit.Reason(reason)
		case blocking := <-lane.blockings:
			lane.setBlocked(blocking)
		case p := <-s.pings:
			close(p.connected)
		case r := <-s.requests:
			if err := s.carry(ctx, lane, r); err != nil {
				return err
			}
		}
	}
}

// carry publishes one request. It returns an error if the session is spoilt. A
// missing queue or exchange, or a message that is too large, costs the channel, not the
// connection.
func (s *supervisor) carry(ctx context.Context, lane *lane, r *request) error {
	outcome, spoilt := lane.publish(ctx, s.dress(r, lane.session.User))
	for s.concede(r, spoilt) { // the broker has dropped the message as well
		if spoilt = lane.reopen(); spoilt == nil {
			outcome, spoilt = lane.publish(ctx, s.dress(r, lane.session.User))
		}
	}
	r.answer <- outcome
	if outcome == nil {
		s.pause.Reset()
	}
	if spoilt != nil && isAnswer(outcome) {
		return lane.reopen()
	}
	return spoilt
}

// dress removes from the request the features that the broker has refused.
func (s *supervisor) dress(r *request, user string) *request {
	if s.unchecked {
		r.queue = ""
	}
	r.message.UserId = rabbit.Short(user)
	if s.anonymous {
		r.message.UserId = ""
	}
	return r
}

// concede turns off the feature of the request that the broker has just refused. It
// reports whether there was one.
func (s *supervisor) concede(r *request, spoilt error) bool {
	var reason *amqp.Error
	if !errors.As(spoilt, &reason) {
		return false
	}
	switch {
	case r.queue != "" && checkRefused(reason):
		s.unchecked = true
		s.logger.Warn("events will be published without a check that the monitor's queue exists", "queue", rabbit.Queue, "error", spoilt)
	case !s.anonymous && userRefused(reason):
		s.anonymous = true
		s.logger.Warn("events will be published without the user: the broker knows this connection under another name", "error", spoilt)
	default:
		return false
	}
	return true
}

// checkRefused reports whether the broker refuses the check that the queue exists: from
// 4.2.6 on RabbitMQ requires a permission on the queue. A refusal of the exchange does
// not count.
func checkRefused(reason *amqp.Error) bool {
	return reason.Code == amqp.AccessRefused && strings.Contains(reason.Reason, "queue '"+rabbit.Queue+"'")
}

// userRefused reports whether the user of the URL is not the one that the broker
// knows: a certificate or a token names another.
func userRefused(reason *amqp.Error) bool {
	return reason.Code == amqp.PreconditionFailed && strings.Contains(reason.Reason, "user_id property")
}
