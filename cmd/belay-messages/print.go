package main

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/belaygo/belay/cmd/internal/cli"
	"github.com/belaygo/belay/relay"
)

// row is a message as JSON.
type row struct {
	ID       string     `json:"id"`
	State    string     `json:"state"` // dead, undecided or parked
	Topic    string     `json:"topic"`
	Key      string     `json:"key,omitempty"` // quoted if it is not plain
	StoredAt time.Time  `json:"stored_at"`
	Attempts int        `json:"attempts"`
	DeadAt   *time.Time `json:"dead_at,omitempty"`
	RetryAt  *time.Time `json:"retry_at,omitempty"` // of parked
	Reason   string     `json:"reason"`
}

func rowOf(m relay.Waiting) row {
	r := row{ID: m.ID, State: "parked", Topic: m.Topic, Key: plain(m.Key), StoredAt: m.Time.UTC(), Attempts: m.Attempts, Reason: m.Reason}
	at := m.RetryAt.UTC()
	switch {
	case m.Undecided:
		r.State, r.DeadAt = "undecided", &at
	case m.Dead:
		r.State, r.DeadAt = "dead", &at
	default:
		r.RetryAt = &at
	}
	return r
}

// plain returns a key as it is if a terminal can show it, else quoted.
func plain(key string) string {
	if quoted := strconv.QuoteToASCII(key); quoted[1:len(quoted)-1] != key {
		return quoted
	}
	return key
}

// printList prints messages. There may be more than these.
func (c command) printList(w io.Writer, list []relay.Waiting, more bool) error {
	rows := make([]row, len(list))
	for n, m := range list {
		rows[n] = rowOf(m)
	}
	if c.json {
		return cli.PrintJSON(w, rows)
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintln(w, "no message waits for a decision")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tSTATE\tTOPIC\tKEY\tSTORED\tSINCE OR NEXT TRY\tTRIED\tREASON")
	for _, r := range rows {
		at := r.DeadAt
		if at == nil {
			at = r.RetryAt
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n", r.ID, r.State, r.Topic, r.Key, cli.Moment(r.StoredAt), cli.Moment(*at), r.Attempts, r.Reason)
	}
	err := t.Flush()
	if more && err == nil {
		_, err = fmt.Fprintln(w, "there are more: see -limit")
	}
	return err
}

func (c command) printBacklog(w io.Writer, b relay.Backlog) error {
	if c.json {
		return cli.PrintJSON(w, struct {
			Table      string  `json:"table"`
			Waiting    int     `json:"waiting"`
			Oldest     float64 `json:"oldest_seconds"`
			Parked     int     `json:"parked"`
			Dead       int     `json:"dead"`
			Undecided  int     `json:"undecided"`
			OldestDead float64 `json:"oldest_dead_seconds"`
		}{b.Table, b.Waiting, b.Oldest.Seconds(), b.Parked, b.Dead, b.Undecided, b.OldestDead.Seconds()})
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "table\t%s\n", b.Table)
	fmt.Fprintf(t, "messages that wait\t%s\n", aged(b.Waiting, "the oldest without a dead letter before it", b.Oldest))
	fmt.Fprintf(t, "keys parked\t%s\n", counted(b.Parked))
	fmt.Fprintf(t, "dead letters\t%s\n", aged(b.Dead, "the first", b.OldestDead))
	fmt.Fprintf(t, "of these undecided\t%s\n", counted(b.Undecided))
	return t.Flush()
}

// counted returns a number, which stands for more if it is where relay.Count ends.
func counted(n int) string {
	if n >= 10_000 {
		return strconv.Itoa(n) + "+"
	}
	return strconv.Itoa(n)
}

func aged(n int, what string, age time.Duration) string {
	if age == 0 {
		return counted(n)
	}
	return fmt.Sprintf("%s, %s for %v", counted(n), what, age.Round(time.Second))
}

func (c command) printSettled(w io.Writer, all []settled) error {
	if c.json {
		return cli.PrintJSON(w, all)
	}
	did := map[string]string{"retry": "is sent again", "drop": "is dropped"}[c.name]
	for _, s := range all {
		if !s.Done { // the error says it
			continue
		}
		if _, err := fmt.Fprintf(w, "%s %s\n", s.ID, did); err != nil {
			return err
		}
	}
	return nil
}
