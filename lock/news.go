package lock

import (
	"context"
	"errors"
	"log/slog"
)

// news is what happened under Locker.mu and is told when it is free again:
// loggers are not ours, and a context may have any number of children.
type news struct {
	ended   []ending
	lost    []lossOf
	stalled stall
}

// An ending is the end of a lease whose holder has not released it.
type ending struct {
	cancel context.CancelCauseFunc
	cause  error
	key    string
}

type lossOf struct {
	grant *grant
	cause error
}

// A stall is the failure of renewals in one batch.
type stall struct {
	locks int
	first *grant
	err   error // of the first
}

func (s *stall) add(g *grant, err error) {
	if s.locks++; s.locks == 1 {
		s.first, s.err = g, err
	}
}

// unlock unlocks mu and tells the news. The context of a lost lease ends before
// the next caller may try.
func (l *Locker) unlock() {
	n := l.news
	l.news = news{}
	l.mu.Unlock()
	for _, e := range n.ended {
		e.cancel(e.cause)
	}
	for _, e := range n.ended {
		l.gates.leave(e.key, false)
		l.finish()
	}
	for _, x := range n.lost {
		l.logLoss(x)
	}
	if s := n.stalled; s.locks > 0 {
		l.cfg.Logger.Warn("renew locks", "failed", s.locks, "key", s.first.hold.Key,
			"node", s.first.place.Node, "error", s.err)
	}
}

func (l *Locker) logLoss(x lossOf) {
	level, g := slog.LevelWarn, x.grant
	if errors.Is(x.cause, ErrClosed) { // the program ends; no lock has failed
		level = slog.LevelInfo
	}
	l.cfg.Logger.Log(context.Background(), level, "lock lost", "key", g.hold.Key, "owner", g.hold.Owner,
		"node", g.place.Node, "slot", g.place.Slot, "error", x.cause)
}
