package monitor

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/words"
	"github.com/belaygo/belay/notify"
)

const maxDescription = 2 << 10 // bytes

// Line renders ev for a terminal or a log: one line, whatever is in the
// event.
//
//	2026-05-04T03:02:01.000Z WARNING overlap orders/orders-1 "order:42" ...
func Line(ev notify.Event) string {
	return fmt.Sprintf("%s %s %s %s/%s %s %s\n",
		ev.CaughtAt.UTC().Format("2006-01-02T15:04:05.000Z"),
		strings.ToUpper(incident.SeverityOf(ev)), ev.Verdict, token(ev.Service), token(ev.Instance),
		strconv.Quote(text.Clip(ev.Key, store.MaxText)),
		text.Line(text.Clip(words.English.Event(ev), maxDescription)))
}

// IncidentLine renders an incident in the same way.
//
//	2026-05-04T03:02:01.000Z WARNING incident orders failover new, confidence high: 1 operation was rolled back ...
func IncidentLine(i incident.Incident) string {
	says := fmt.Sprintf("%d events, %d failures", i.Events, i.Effect.Failures)
	if effect := words.EffectLine(i.Current()); effect != "" {
		says = effect + "; " + says
	}
	if len(i.Evidence) > 0 {
		says += "; " + words.English.Evidence(i.Evidence[0])
	}
	return fmt.Sprintf("%s %s incident %s %s %s, confidence %s: %s\n",
		i.UpdatedAt.UTC().Format("2006-01-02T15:04:05.000Z"), strings.ToUpper(i.Severity()),
		token(i.Service), i.Cause, i.State, i.Confidence, text.Line(text.Clip(says, maxDescription)))
}

// token returns s as one word of the line.
func token(s string) string {
	if s == "" {
		return "-"
	}
	s = text.Clip(s, store.MaxText)
	if strings.ContainsAny(s, ` "/`) || text.Line(s) != s {
		return strconv.Quote(s)
	}
	return s
}
