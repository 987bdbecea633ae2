package main

import (
	"log/slog"
	"slices"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/config"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/dispatch"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/receiver"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/selfcheck"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
)

const maxAlerts = 50 // incidents in one message; the others are counted

// receivers are those of the settings, in their order.
type receivers []*receiver.Receiver

func newReceivers(cfg *config.Config) (all receivers, err error) {
	for _, r := range cfg.Receivers {
		to, err := receiver.New(r.Config(cfg.Location()))
		if err != nil {
			return nil, usagef("receivers: %w", err)
		}
		all = append(all, to)
	}
	return all, nil
}

// dispatcher returns what sends them incidents.
func (all receivers) dispatcher(cfg *config.Config, st *store.Store, logger *slog.Logger) (*dispatch.Dispatcher, error) {
	var routes []dispatch.Route
	for i, r := range cfg.Receivers {
		if !r.Incidents {
			continue
		}
		route := dispatch.Route{
			To: all[i], Services: r.Services, Severities: r.Severities, EscalateAfter: r.EscalateAfter,
			GroupBy: r.GroupBy, GroupWait: r.GroupWait, GroupInterval: r.GroupInterval,
			RepeatInterval: r.RepeatInterval, Resolved: r.SendResolved, RatePerMinute: int(r.RateLimit),
			MaxAlerts: maxAlerts, Continuous: r.Type == receiver.Alertmanager,
			Keyed: r.Type == receiver.Alertmanager || r.Type == receiver.Webhook,
		}
		if route.Continuous { // it groups by itself
			route.MaxAlerts = 0
		}
		routes = append(routes, route)
	}
	return dispatch.New(dispatch.Config{
		Store: st, Routes: routes, ExternalURL: cfg.ExternalURL, DocsURL: cfg.DocsURL, Logger: logger,
	})
}

// critical reports whether a receiver gets critical incidents. Its services do not count: a
// guard-monitor that fails is no service's.
func critical(r config.Receiver) bool {
	return r.Incidents && (len(r.Severities) == 0 || slices.Contains(r.Severities, "critical"))
}

// warnOfGaps logs what the settings leave unsent.
func warnOfGaps(cfg *config.Config, logger *slog.Logger) {
	for _, severity := range []string{"critical", "warning"} {
		if len(cfg.Receivers) > 0 && !slices.ContainsFunc(cfg.Receivers, func(r config.Receiver) bool { return r.Gets(severity) }) {
			logger.Warn("no receiver gets the incidents of all services: some may be on the pages only", "severity", severity)
		}
	}
	escalates := slices.ContainsFunc(cfg.Receivers, func(r config.Receiver) bool { return r.EscalateAfter > 0 })
	if escalates && !cfg.Web.Writes {
		logger.Warn("nobody can acknowledge an incident without web.writes: each one that stays open is escalated")
	}
}

// selfcheck returns what tells them that guard-monitor itself cannot work.
func (all receivers) selfcheck(cfg *config.Config, parts []selfcheck.Part, st *store.Store, logger *slog.Logger) (*selfcheck.Check, error) {
	var routes []selfcheck.Route
	for i, r := range cfg.Receivers {
		routes = append(routes, selfcheck.Route{
			To: all[i], Failures: critical(r), Delay: r.EscalateAfter, Repeat: r.RepeatInterval, Resolved: r.SendResolved,
			Continuous: r.Type == receiver.Alertmanager, Watchdog: r.WatchdogInterval,
		})
	}
	return selfcheck.New(selfcheck.Config{
		Parts: parts, Routes: routes, After: cfg.Incidents.BlindAfter, Log: st,
		ExternalURL: cfg.ExternalURL, DocsURL: cfg.DocsURL, Logger: logger,
	})
}
