package receiver

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
)

const (
	maxTitle = 200 // bytes
	maxLine  = 400 // bytes of one line of a body, before it is escaped
	maxRows  = 12  // lines of evidence shown of one alert
)

// title says how many, of what and whose: what a locked phone shows.
func (n *Notification) title() string {
	if len(n.Alerts) == 0 {
		return "guard-monitor"
	}
	state := fmt.Sprintf("[FIRING:%d]", n.count(Firing)+n.More)
	switch {
	case n.Routine:
		state = "[OK]"
	case n.Status() == Resolved:
		state = fmt.Sprintf("[RESOLVED:%d]", n.count(Resolved)+n.More)
	}
	words := []string{state}
	if len(n.Alerts) == 1 && n.More == 0 {
		words = append(words, n.Alerts[0].Annotations[AnnotationSummary])
	} else {
		for _, name := range slices.Sorted(maps.Keys(n.GroupLabels)) {
			words = append(words, n.GroupLabels[name])
		}
		if len(n.GroupLabels) == 0 {
			words = append(words, "Belay lock failures")
		}
	}
	return text.Line(text.Clip(strings.Join(words, " "), maxTitle))
}

// body renders the alerts as lines, in at most limit bytes after escape (nil:
// none). What has no place is counted and left to the page.
func (r *Receiver) body(n *Notification, limit int, escape func(string) string) string {
	if escape == nil {
		escape = func(s string) string { return s }
	}
	w := &lines{limit: limit - len(n.ExternalURL) - maxRest, escape: escape}
	shown := 0
	for i := range n.Alerts {
		if !r.alert(w, &n.Alerts[i], len(n.Alerts) > 1) {
			break
		}
		shown++
	}
	rest := len(n.Alerts) - shown + n.More
	w.limit = limit
	if rest > 0 {
		w.add(fmt.Sprintf("... and %d more", rest))
	}
	if n.ExternalURL != "" {
		w.add(n.ExternalURL)
	}
	return w.String()
}

// maxRest is room for the lines behind the alerts.
const maxRest = 40

// alert writes one alert and reports whether its first lines had room.
func (r *Receiver) alert(w *lines, a *Alert, several bool) bool {
	head := a.Annotations[AnnotationSummary]
	if several {
		head = fmt.Sprintf("[%s] %s", strings.ToUpper(string(a.Status())), head)
	}
	since := "since " + r.clock(a.StartsAt)
	if !a.EndsAt.IsZero() {
		since += " until " + r.clock(a.EndsAt)
	}
	if !w.add(head) || !w.add(since) {
		return false
	}
	w.add(a.Annotations[AnnotationDescription])
	rows := strings.Split(a.Annotations[AnnotationEvidence], "\n")
	for _, row := range rows[:min(len(rows), maxRows)] {
		if row != "" {
			w.add("- " + row)
		}
	}
	if len(rows) > maxRows {
		w.add(fmt.Sprintf("- ... and %d more rows", len(rows)-maxRows))
	}
	if next := a.Annotations[AnnotationNext]; next != "" {
		w.add("Next: " + next)
	}
	w.add(a.Annotations[AnnotationRunbook])
	w.add(a.URL)
	return true
}

func (r *Receiver) clock(t time.Time) string {
	return t.In(r.cfg.Location).Format("2006-01-02 15:04:05 -07:00")
}

// lines are whole lines within a limit.
type lines struct {
	limit  int
	escape func(string) string
	b      strings.Builder
}

// add reports whether the line had room. An empty line is left out.
func (w *lines) add(line string) bool {
	line = w.escape(text.Line(text.Clip(line, maxLine)))
	if line == "" {
		return true
	}
	if w.b.Len() > 0 {
		line = "\n" + line
	}
	if w.b.Len()+len(line) > w.limit {
		return false
	}
	w.b.WriteString(line)
	return true
}

func (w *lines) String() string { return w.b.String() }
