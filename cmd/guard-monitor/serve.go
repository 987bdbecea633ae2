package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/config"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/monitor"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/web"
	"github.com/belaygo/belay/internal/tlsfile"
)

const stopTimeout = 9 * time.Second // for the parts; the store closes after them

// serve runs the parts, which meet in the store only. The sources store events and
// acknowledge them then, the watcher stores what happens in Redis, the tracker makes
// incidents of both, and the dispatcher notifies people of these. No part passes
// another anything that a kill could lose. The selfcheck notifies people of parts that fail.
func serve(ctx context.Context, c *call) (err error) {
	logger := c.logger()
	redis.SetLogger(redisLog{logger})
	st, err := store.Open(ctx, c.cfg.DB)
	if err != nil {
		return fmt.Errorf("db: %w", err)
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	mon, err := monitor.New(ctx, monitor.Config{Store: st, Out: c.stdout, Logger: logger})
	if err != nil {
		return err
	}
	from, err := newSources(c.cfg, mon, logger)
	if err != nil {
		return err
	}
	watched, err := targets(c.cfg.Redis)
	if err != nil {
		return err
	}
	var state *monitor.State
	watcher := watch.New(watch.Config{
		Targets: watched,
		Record: func(ctx context.Context, entries []watch.Entry) error {
			if err := st.AddEntries(ctx, entries); err != nil {
				return err
			}
			state.Count(entries)
			return nil
		},
		Logger: logger.With("server", "redis"),
	})
	state = monitor.NewState(st, watcher, logger)
	tracker := incident.NewTracker(incident.Config{
		Store: st, Locator: watcher, Ready: watcher.Ready(), Connected: from.connected, Listening: from.listening, RejectedAt: from.rejectedAt,
		Quiet: c.cfg.Incidents.Quiet, SilentAfter: c.cfg.Incidents.SilentAfter, Logger: logger,
	})
	warnOfGaps(c.cfg, logger)
	people, err := newReceivers(c.cfg)
	if err != nil {
		return err
	}
	dispatcher, err := people.dispatcher(c.cfg, st, logger)
	if err != nil {
		return err
	}
	self, err := people.selfcheck(c.cfg, append(from.parts(st), redisParts(watcher)...), st, logger)
	if err != nil {
		return err
	}
	pages := web.Config{Store: st, Metrics: newRegistry(append(from.collectors(), mon, state, dispatcher)...), Clusters: watcher, Logger: logger}
	from.show(&pages)
	site, err := newSite(c.cfg, pages)
	if err != nil {
		return err
	}
	if err := site.listen(ctx, c.cfg); err != nil {
		return err
	}
	fmt.Fprintf(c.stderr, "guard-monitor: listening on %s\n", site.address())
	return together(ctx,
		site.serve,
		site.handler.Run,
		func(ctx context.Context) error { return from.run(ctx, mon) },
		watcher.Run,
		tracker.Run,
		dispatcher.Run,
		self.Run,
		func(ctx context.Context) error { return purge(ctx, st, c.cfg.Retention, logger) },
	)
}

const purgeEvery = 10 * time.Minute

// purge keeps the store within its bounds until ctx ends.
func purge(ctx context.Context, st *store.Store, r config.Retention, logger *slog.Logger) error {
	tick := time.NewTicker(purgeEvery)
	defer tick.Stop()
	for {
		deleted, err := st.Purge(ctx, store.Retention{
			Events: r.Events, Incidents: r.Incidents, Rows: r.MaxEvents, Bytes: r.MaxBytes,
		}, time.Now())
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			logger.LogAttrs(ctx, slog.LevelError, "store not purged", slog.Any("error", err))
		case deleted > 0:
			logger.LogAttrs(ctx, slog.LevelInfo, "store purged", slog.Int64("rows", deleted))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func targets(list []config.Redis) (all []watch.Target, err error) {
	for _, r := range list {
		t := watch.Target{
			Name: r.Name, Addrs: r.Nodes, Master: r.SentinelMaster,
			Username: r.Username, Password: string(r.Password),
			SentinelUsername: r.SentinelUsername, SentinelPassword: string(r.SentinelPassword),
		}
		if r.TLS {
			files := tlsfile.Files{Authorities: r.TLSCAFile, Certificate: r.TLSCertFile, Key: r.TLSKeyFile}
			if t.TLS, err = files.Config(); err != nil {
				return nil, usagef("redis %s: %w", r.Name, err)
			}
		}
		all = append(all, t)
	}
	return all, nil
}
