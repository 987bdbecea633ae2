// Package versus puts guard.Do beside what does the same without it: the plain
// insert, the unique index alone, SELECT ... FOR UPDATE, compare-and-set, and an
// UPDATE that tests what it changes. All run against the same servers over the same
// pool, one after the other, in rounds; figures are compared within a round only. Most
// cases have their callers in one process, some have workers: processes with callers
// of their own. After each heat what the database has is compared with the answers to
// the callers.
package versus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/belaygo/belay/benchmark/internal/measure"
	"github.com/belaygo/belay/benchmark/internal/stage"
)

// Config describes a run. All fields but Delay are required.
type Config struct {
	Servers    stage.Servers // MariaDB, where a database is made, and Redis
	Pool       int           // database connections
	Delay      time.Duration // of each round trip to the database and to Redis
	Warm, Span time.Duration
	Rounds     int
	Cases      []Case
	Out        io.Writer // for the progress
}

// Run measures every case in every round. Nothing else should use the servers
// meanwhile: their own counters are read.
func Run(ctx context.Context, cfg Config) (report Report, err error) {
	a, err := open(ctx, cfg)
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, a.Close(ctx)) }()
	var rounds []round
	count := measure.Progress(cfg.Out, "measure", 0, int64(cfg.Rounds*len(cfg.Cases)))
	for i := range cfg.Rounds {
		r, err := a.round(ctx, cfg, i, count)
		if err != nil {
			return Report{}, err
		}
		rounds = append(rounds, r)
	}
	trip := measure.MedianOf(rounds, func(r round) float64 { return float64(r.roundTrip) })
	return Report{Figures: medians(cfg.Cases, rounds, cfg.Delay), Targets: targets(rounds), RoundTrip: time.Duration(trip), Delay: cfg.Delay}, nil
}

// round runs all cases. Each round begins with another one, and every second
// goes backwards, so that no case always comes after the same one.
func (a *arena) round(ctx context.Context, cfg Config, number int, count func(int64)) (round, error) {
	r, all := round{figures: make(map[caseKey]Figures)}, cfg.Cases
	var err error
	if r.roundTrip, err = a.roundTrip(ctx); err != nil {
		return r, err
	}
	for i := range all {
		c := all[order(i, number, len(all), cfg.Rounds)]
		f, err := a.run(ctx, c, int64(1+number*len(all)+i), cfg.Warm, cfg.Span)
		if err != nil {
			return r, fmt.Errorf("%s: %w", c.key(), err)
		}
		r.figures[c.key()] = f
		count(1)
	}
	return r, nil
}

// order returns which of n cases is number i in a round.
func order(i, round, n, rounds int) int {
	if round%2 == 1 {
		i = n - 1 - i
	}
	return (i + round*n/rounds) % n
}
