package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/intake"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/selfcheck"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
)

// parts are what guard-monitor needs to take events.
func (s sources) parts(st *store.Store) []selfcheck.Part {
	all := []selfcheck.Part{{
		Name: "store", Summary: "guard-monitor cannot store events",
		Next: "Look at its disk and its log. Events wait in the queue belay.monitor or in the outboxes, and none is lost.",
		Err:  s.storeErr(st),
	}}
	if s.consumer != nil {
		all = append(all, selfcheck.Part{
			Name: "broker", Summary: "guard-monitor receives no events from RabbitMQ",
			Next: "Look at RabbitMQ, and at the network between it and guard-monitor. Events wait in the queue belay.monitor or in the outboxes, and none is lost.",
			Err:  s.brokerErr,
		})
	}
	if s.endpoint != nil {
		all = append(all, selfcheck.Part{
			Name: "ingest", Summary: "guard-monitor rejects events and heartbeats that services post",
			Next: "Look at belay_ingest_requests_total by result, and at the load of its host. Events wait in the outboxes, and none is lost.",
			Err:  s.ingestErr,
		})
	}
	return all
}

// probeEvery is between two writes that only find out whether the store takes one.
const probeEvery = 15 * time.Second

// storeErr returns a check whether events could be stored, also while none comes.
func (s sources) storeErr(st *store.Store) func(context.Context) error {
	var probed time.Time
	var failure error
	return func(ctx context.Context) error {
		if s.consumer != nil {
			if err := s.consumer.Err(); errors.Is(err, intake.ErrHandler) {
				return err
			}
		}
		if s.endpoint != nil {
			if err := s.endpoint.Err(); err != nil {
				return err
			}
		}
		if time.Since(probed) >= probeEvery {
			failure = errors.Join(st.Ping(ctx), st.Writable(ctx))
			probed = time.Now()
		}
		return failure
	}
}

// brokerErr returns why events or heartbeats do not arrive from the broker, unless it is the
// store.
func (s sources) brokerErr(context.Context) error {
	switch err := s.consumer.Err(); {
	case errors.Is(err, intake.ErrHandler): // Listening is false, too
		return nil
	case err != nil:
		return err
	case !s.consumer.Listening():
		return errors.New("heartbeats are not read, so a silent service is not noticed")
	}
	return nil
}

// ingestErr returns why what services post is rejected, unless it is the store.
func (s sources) ingestErr(context.Context) error {
	if s.endpoint.Err() == nil && !s.endpoint.Listening() {
		return errors.New("too many requests at a time, so a silent service is not noticed")
	}
	return nil
}

// staleLook is how old the last look at a Redis may be: one takes place each second.
const staleLook = 15 * time.Second

// redisParts are the watched Redis servers. One fails if none of its nodes answers.
func redisParts(w *watch.Watcher) (all []selfcheck.Part) {
	for i, c := range w.Clusters() {
		all = append(all, selfcheck.Part{
			Name: "redis " + c.Name, Summary: fmt.Sprintf("guard-monitor cannot query the Redis %q", c.Name),
			Next: "Look whether this Redis is down, or only guard-monitor cannot reach it. Meanwhile guard-monitor does not see what happens there, and finds fewer causes.",
			Err:  func(context.Context) error { return lookErr(w.Clusters()[i]) },
		})
	}
	return all
}

func lookErr(c watch.Cluster) error {
	if age := time.Since(c.SeenAt); age > staleLook {
		return errors.New("it was not queried lately")
	}
	err := errors.New("no node is known")
	for _, n := range c.Nodes {
		if n.Up {
			return nil
		}
		err = fmt.Errorf("no node answers, of %d; %s: %s", len(c.Nodes), n.Addr, n.Error)
	}
	return err
}
