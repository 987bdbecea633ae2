package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/monitor"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
)

const (
	tailEvery = 500 * time.Millisecond
	maxTail   = store.MaxRecent
)

func tailFlags(c *call, fs *flag.FlagSet) {
	limitFlag(10)(c, fs)
	fs.BoolVar(&c.follow, "follow", true, "")
}

// tail reads the database beside the monitor that writes it.
func tail(ctx context.Context, c *call) (err error) {
	if err := c.checkLimit(0, maxTail); err != nil {
		return err
	}
	st, err := c.openStore(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	f := &follower{store: st, out: c.stdout}
	if err := f.begin(ctx, c.limit); err != nil || !c.follow {
		return err
	}
	tick := time.NewTicker(tailEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := f.next(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// openStore opens the database of a monitor, which may be running. It neither creates nor
// migrates one.
func (c *call) openStore(ctx context.Context) (*store.Store, error) {
	st, err := store.Attach(ctx, c.cfg.DB)
	if err != nil {
		return nil, fmt.Errorf("db: %w", err)
	}
	return st, nil
}

// follower prints what is new in a store.
type follower struct {
	store *store.Store
	out   io.Writer
	seq   int64             // of the last event that was printed
	since time.Time         // of the last incidents that were looked at
	told  map[string]string // the lines of the incidents that were found last, by ID
}

// begin prints the last n events.
func (f *follower) begin(ctx context.Context, n int) error {
	f.since = time.Now()
	last, err := f.store.Recent(ctx, max(n, 1))
	if err != nil {
		return err
	}
	if len(last) > 0 {
		f.seq = last[0].Seq
	}
	return f.print(last[:min(n, len(last))])
}

// next prints the events and the incidents that came since.
func (f *follower) next(ctx context.Context) error {
	recent, err := f.store.Recent(ctx, maxTail)
	if err != nil {
		return err
	}
	fresh := slices.DeleteFunc(recent, func(r store.Received) bool { return r.Seq <= f.seq })
	if len(fresh) > 0 {
		if first := fresh[len(fresh)-1].Seq; f.seq > 0 && first > f.seq+1 && len(fresh) == maxTail {
			fmt.Fprintf(f.out, "... %d events not shown\n", first-f.seq-1)
		}
		f.seq = fresh[0].Seq
	}
	if err := f.print(fresh); err != nil {
		return err
	}
	return f.incidents(ctx)
}

// print writes events, the oldest first.
func (f *follower) print(events []store.Received) error {
	for _, r := range slices.Backward(events) {
		if _, err := io.WriteString(f.out, monitor.Line(r.Event)); err != nil {
			return err
		}
	}
	return nil
}

// incidents writes those whose line is another than before.
func (f *follower) incidents(ctx context.Context) error {
	now, err := f.store.Current(ctx)
	if err != nil {
		return err
	}
	since := f.since
	told := make(map[string]string)
	for _, i := range slices.Backward(now.Incidents) {
		if i.UpdatedAt.Before(since) {
			continue
		}
		line := monitor.IncidentLine(*i)
		told[i.ID] = line
		if f.told[i.ID] == line {
			continue
		}
		if i.UpdatedAt.After(f.since) {
			f.since = i.UpdatedAt
		}
		if _, err := io.WriteString(f.out, line); err != nil {
			return err
		}
	}
	f.told = told
	return nil
}
