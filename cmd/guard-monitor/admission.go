package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/config"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/deadletter"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
)

// admission judges whether serve would take the events of dead letters.
type admission struct {
	cfg   *config.Config
	store *store.Store // nil if the database is not here: the bound of services is not judged

	services map[string]bool // that replayed letters make known
	made     map[string]int  // how many of these by sender
}

// admission opens the database, unless it is on another host.
func (c *call) admission(ctx context.Context) (*admission, error) {
	a := &admission{cfg: c.cfg, services: make(map[string]bool), made: make(map[string]int)}
	st, err := c.openStore(ctx)
	if errors.Is(err, os.ErrNotExist) {
		return a, nil
	}
	a.store = st
	return a, err
}

func (a *admission) close() error {
	if a.store == nil {
		return nil
	}
	return a.store.Close()
}

// judge notes why serve would refuse the event of a letter. Its errors are the store's.
func (a *admission) judge(ctx context.Context, l *deadletter.Letter) error {
	if l.Err != nil {
		return nil //nolint:nilerr // a letter that can't be read has no event
	}
	service := l.Event.Service
	l.Refused = a.cfg.Admit(l.Sender, service)
	if l.Refused != nil || a.store == nil || a.services[service] {
		return nil //nolint:nilerr // it is noted
	}
	known, made, err := a.store.Made(ctx, service, l.Sender)
	if err == nil && !known && made+a.made[l.Sender] >= store.MaxServices {
		l.Refused = fmt.Errorf("service %.80q: %w", service, store.ErrManyServices)
	}
	return err
}

// replayed notes that the service of a letter may become known.
func (a *admission) replayed(l *deadletter.Letter) {
	if !a.services[l.Event.Service] {
		a.services[l.Event.Service] = true
		a.made[l.Sender]++
	}
}
