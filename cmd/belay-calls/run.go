package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/belaygo/belay/cmd/internal/cli"
	"github.com/belaygo/belay/cmd/internal/dsn"
	"github.com/belaygo/belay/internal/pending"
	"github.com/belaygo/belay/internal/sqldb"
)

// requestTimeout is how long the database has for an answer.
const requestTimeout = 10 * time.Second

func (c command) run(ctx context.Context, w io.Writer) error {
	from := dsn.Source{Variable: "BELAY_CALLS_DSN", Name: c.dsn, Dialect: c.dialect}
	pool, name, err := from.Open()
	if err != nil {
		return fmt.Errorf("%w: %w", err, errUsage)
	}
	defer func() { _ = pool.Close() }()
	d, _ := sqldb.Of(name)
	db := sqldb.New(pool, d)
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if c.is("list") {
		err = c.list(ctx, db, w)
	} else {
		err = c.decide(ctx, db, w)
	}
	return from.Mask(err)
}

// row is a request as JSON.
type row struct {
	ID        string    `json:"id"`
	State     string    `json:"state"` // undecided, calling, answered or open
	Operation string    `json:"operation"`
	Key       string    `json:"key"`
	Since     time.Time `json:"since"`
	Until     time.Time `json:"until"`
	Tries     int       `json:"tries"`
}

func rowOf(l pending.Listed) row {
	r := row{ID: l.ID(), State: "open", Operation: l.Operation, Key: l.Key(), Since: l.Since.UTC(), Until: l.Last.UTC(), Tries: l.Tries}
	switch {
	case l.Undecided:
		r.State = "undecided"
	case l.Answered:
		r.State = "answered"
	case l.Calling:
		r.State = "calling"
	}
	return r
}

func (c command) list(ctx context.Context, db sqldb.DB, w io.Writer) error {
	find := pending.Undecided
	if c.all {
		find = pending.List
	}
	list, err := find(ctx, db, c.limit+1)
	if err != nil {
		return err
	}
	rows := make([]row, min(len(list), c.limit))
	for n := range rows {
		rows[n] = rowOf(list[n])
	}
	if c.json {
		return cli.PrintJSON(w, rows)
	}
	if len(rows) == 0 {
		none := "no request waits for a decision"
		if c.all {
			none = "no request is pending"
		}
		_, err := fmt.Fprintln(w, none)
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tSTATE\tRESERVED\tLAST CALL BEFORE\tTRIES\tKEY")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%s\n", r.ID, r.State, cli.Moment(r.Since), cli.Moment(r.Until), r.Tries, r.Key)
	}
	err = t.Flush()
	if len(list) > len(rows) && err == nil {
		_, err = fmt.Fprintln(w, "there are more: see -limit")
	}
	return err
}

// decide stores a result.
func (c command) decide(ctx context.Context, db sqldb.DB, w io.Writer) error {
	found, err := c.find(ctx, db)
	if err != nil {
		return err
	}
	err = pending.Decide(ctx, db, found, pending.Result{Refused: c.is("refuse"), Body: []byte(c.result)})
	if errors.Is(err, pending.ErrTaken) {
		return fmt.Errorf("%w: it was settled or decided just now", errGone)
	}
	if err != nil {
		return err
	}
	if c.json {
		found.Answered, found.Undecided = true, false
		return cli.PrintJSON(w, rowOf(found))
	}
	_, err = fmt.Fprintf(w, "%s has its result: repeat the request, which settles it\n", c.words[1])
	return err
}

// find returns the request of the command line, if it may be decided.
func (c command) find(ctx context.Context, db sqldb.DB) (found pending.Listed, err error) {
	id := c.words[1]
	list, err := pending.List(ctx, db, maxLimit+1)
	if err != nil {
		return found, err
	}
	n := slices.IndexFunc(list, func(l pending.Listed) bool { return l.ID() == id })
	switch {
	case n < 0 && len(list) > maxLimit:
		return found, fmt.Errorf("no %q among the %d requests that are pending for the longest", id, maxLimit)
	case n < 0:
		return found, fmt.Errorf("%w: %q is not pending: it is settled, or was never made here", errGone, id)
	}
	switch found = list[n]; {
	case found.Answered && !c.replace:
		return found, answered(ctx, db, found)
	case !found.Answered && !found.Undecided:
		return found, fmt.Errorf("%w: repeat the request of %q; it becomes undecided when no call runs, after %s", errOpen, id, cli.Moment(found.Last))
	}
	return found, nil
}

// answered returns the error of a request that has a result.
func answered(ctx context.Context, db sqldb.DB, l pending.Listed) error {
	s, err := pending.Find(ctx, db, l.Request)
	switch {
	case err != nil:
		return err
	case s == nil || s.Result == nil:
		return fmt.Errorf("%w: %q was settled just now", errGone, l.ID())
	}
	kind := "accepted"
	if s.Result.Refused {
		kind = "refused"
	}
	return fmt.Errorf("%w: %q has a result, %s with %.1000s: repeat the request, which settles it, or see -replace", errGone, l.ID(), kind, s.Result.Body)
}
