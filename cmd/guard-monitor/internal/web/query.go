package web

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/notify"
)

const maxParameter = store.MaxText // bytes

// verdicts are all verdicts, as the filters offer them.
var verdicts = []notify.Verdict{notify.VerdictOverlap, notify.VerdictLost, notify.VerdictUnknownCommit, notify.VerdictDegraded, notify.VerdictUnavailable, notify.VerdictCommitLost, notify.VerdictDeadLetter, notify.VerdictUndecided}

// queryError is a query parameter that cannot be right.
type queryError struct{ name, problem string }

func (e *queryError) Error() string { return e.name + ": " + e.problem }

// errNobody is returned when an action needs a name and the request has none.
var errNobody = errors.New("say who you are: the name is empty")

// query reads parameters and keeps the first that is wrong.
type query struct {
	values   url.Values
	location *time.Location
	err      error
}

func (q *query) fail(name, problem string) {
	if q.err == nil {
		q.err = &queryError{name, problem}
	}
}

func (q *query) text(name string) string {
	s := strings.TrimSpace(q.values.Get(name))
	switch {
	case len(s) > maxParameter:
		q.fail(name, fmt.Sprintf("is longer than %d bytes", maxParameter))
		return ""
	case !utf8.ValidString(s) || strings.ContainsRune(s, 0):
		q.fail(name, "is no text")
		return ""
	}
	return s
}

func (q *query) int(name string, least, most, otherwise int64) int64 {
	s := q.text(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < least || n > most {
		q.fail(name, fmt.Sprintf("want a whole number from %d to %d", least, most))
		return otherwise
	}
	return n
}

// time takes RFC 3339, and what a browser's field for a time sends, in the
// monitor's zone.
func (q *query) time(name string) time.Time {
	s := q.text(name)
	if s == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, s)
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"} {
		if err == nil {
			break
		}
		t, err = time.ParseInLocation(layout, s, q.location)
	}
	if err != nil || t.Year() < 1 || t.Year() > 9999 {
		q.fail(name, "want a time such as 2026-05-04T03:02:01Z")
		return time.Time{}
	}
	return t
}

// chosen reads a parameter that may be there several times, or have commas.
func chosen[T ~string](q *query, name string, known []T) (list []T) {
	for _, value := range q.values[name] {
		for part := range strings.SplitSeq(value, ",") {
			v := T(strings.TrimSpace(part))
			switch {
			case v == "" || slices.Contains(list, v):
			case !slices.Contains(known, v):
				q.fail(name, fmt.Sprintf("want some of %v", known))
			default:
				list = append(list, v)
			}
		}
	}
	return list
}

func one[T ~string](q *query, name string, known []T, otherwise T) T {
	list := chosen(q, name, known)
	if len(list) == 0 {
		return otherwise
	}
	return list[0]
}

// Which incidents a list shows.
const (
	showOpen     = "open"
	showResolved = "resolved"
	showAll      = "all"
)

// show returns which incidents a list shows. Somebody who names a key or an event looks for
// its incident, whether it is open or not.
func (q *query) show() string {
	otherwise := showOpen
	if q.text("key")+q.text("event") != "" {
		otherwise = showAll
	}
	return one(q, "show", []string{showOpen, showResolved, showAll}, otherwise)
}

func (q *query) incidents() store.IncidentFilter {
	f := store.IncidentFilter{
		Service: q.text("service"), Key: q.text("key"), Event: q.text("event"), Cluster: q.text("cluster"), Shard: q.text("shard"),
		Causes: chosen(q, "cause", incident.Causes), States: chosen(q, "state", incident.States),
		From: q.time("from"), To: q.time("to"), Before: q.text("before"), Limit: q.limit(),
	}
	switch q.show() {
	case showOpen:
		f.Open = len(f.States) == 0
	case showResolved:
		f.States = []incident.State{incident.Resolved}
	}
	return f
}

func (q *query) events() store.EventFilter {
	return store.EventFilter{
		ID: q.text("event"), Service: q.text("service"), Key: q.text("key"), Table: q.text("table"), Incident: q.text("incident"),
		Verdicts: chosen(q, "verdict", verdicts), Causes: chosen(q, "cause", incident.Causes),
		From: q.time("from"), To: q.time("to"), Before: q.int("before", 0, 1<<62, 0), Limit: q.limit(),
	}
}

func (q *query) timeline() store.TimelineFilter {
	return store.TimelineFilter{
		Cluster: q.text("cluster"), Shard: q.text("shard"), Node: q.text("node"), Kinds: chosen(q, "kind", watch.Kinds),
		From: q.time("from"), To: q.time("to"), Before: q.int("before", 0, 1<<62, 0), Limit: q.limit(),
	}
}

// limit is how many rows a client of the API asks for.
func (q *query) limit() int { return int(q.int("limit", 1, store.MaxRows, store.DefaultRows)) }

func (q *query) page() store.Page {
	return store.Page{Before: q.int("before", 0, 1<<62, 0), Limit: q.limit()}
}

// span is the time that the timeline shows.
func (q *query) span(now time.Time) (from, to time.Time) {
	to = q.time("to")
	if to.IsZero() {
		to = now
	}
	hours := q.int("hours", 1, 24*31, 6)
	from = q.time("from")
	if from.IsZero() {
		from = to.Add(-time.Duration(hours) * time.Hour)
	}
	if !from.Before(to) || to.Sub(from) > 367*24*time.Hour {
		q.fail("from", "want a time before to, and at most a year")
		from = to.Add(-time.Hour)
	}
	return from, to
}

// eventPath is where an event is shown. Services choose the ids; browsers take the
// segments . and .. for directions, however they are escaped, and ServeMux takes
// an escaped slash alone for the end of a path.
func eventPath(id string) string {
	if id == "." || id == ".." || id == "/" {
		return "/event?id=" + url.QueryEscape(id)
	}
	return "/events/" + url.PathEscape(id)
}

func eventID(r *http.Request) string { return cmp.Or(r.PathValue("id"), r.URL.Query().Get("id")) }
