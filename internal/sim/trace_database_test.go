package sim

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/belaygo/belay/internal/model"
	"github.com/belaygo/belay/internal/sim/simdb"
)

// statement takes in what becomes of a statement, before the database executes it.
func (t *tracer) statement(c *call, do action) {
	if c.text == flush {
		if o := t.conns[c.conn]; o != nil {
			t.see(model.Flushed, o.caller())
		}
		return
	}
	if c.op == nil {
		return
	}
	t.conns[c.conn] = c.op
	who := c.op.caller()
	switch verb, _, _ := strings.Cut(c.text, " "); {
	case t.broken[c.conn]:
	case c.text == "COMMIT":
		t.commit(c.conn, who, do)
	case do != run:
		t.unanswered(c)
	case verb == "START": // on PostgreSQL it is the first read that counts
		t.see(model.Begins, who)
	case verb != "SELECT" && verb != "INSERT" && verb != "UPDATE":
		t.others[verb]++
	}
}

// commit takes in what becomes of a COMMIT.
func (t *tracer) commit(conn string, who int, do action) {
	if do == run || do == cutAnswer {
		t.see(model.Commits, who)
	}
	if do == run {
		return
	}
	delete(t.commits, conn)
	switch do {
	case cut:
		t.see(model.CommitLost, who)
	case refuse:
		t.see(model.CommitRefused, who)
	default:
		t.see(model.CommitUnheard, who)
	}
}

// unanswered takes in a statement without an answer.
func (t *tracer) unanswered(c *call) {
	who := c.op.caller()
	switch verb, _, _ := strings.Cut(c.text, " "); verb {
	case "CONNECT", "START", "BEGIN":
		t.see(model.BeginLost, who)
	case "INSERT", "UPDATE":
		t.see(model.WriteLost, who)
	case "SELECT":
		t.see(model.ReadLost, who)
	}
}

// lost takes in a statement that its caller has given up before it had a fate.
func (t *tracer) lost(c *call) {
	if t == nil || c.op == nil || t.broken[c.conn] {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if strings.HasPrefix(c.text, "INSERT") || strings.HasPrefix(c.text, "UPDATE") {
		t.see(model.WriteLeft, c.op.caller())
		return
	}
	t.unanswered(c)
}

// answered takes in the answer of the database to a statement.
func (t *tracer) answered(conn string, sql string, affected int64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.conns[conn]
	if o == nil {
		return
	}
	begins, who := false, o.caller()
	verb, _, _ := strings.Cut(sql, " ")
	switch verb {
	case "START", "BEGIN":
		begins = true
	case "SELECT":
		begins = t.broken[conn] // perhaps: the server may have begun when it crashed
	}
	switch {
	case begins && err != nil:
		t.see(model.BeginLost, who)
	case t.broken[conn]:
	case verb == "COMMIT":
		t.commitAnswered(conn, who, err)
	case verb == "SELECT" && !slices.ContainsFunc(questions, func(part string) bool { return strings.Contains(sql, part) }):
		t.see(model.Reads, who)
	case verb == "INSERT", verb == "UPDATE":
		t.writeAnswered(who, affected, err)
	}
}

func (t *tracer) commitAnswered(conn string, who int, err error) {
	waits := t.commits[conn]
	delete(t.commits, conn)
	switch {
	case err == nil:
		t.see(model.CommitAnswered, who)
	case waits: // its caller has given up, or the server
		t.see(model.CommitUnheard, who)
	}
}

func (t *tracer) writeAnswered(who int, affected int64, err error) {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		t.see(model.WriteLeft, who)
	case err != nil && deadlock(err):
		t.see(model.Deadlocked, who)
	case err != nil || affected == 0:
		t.judging[who] = true
		t.see(model.WriteRefused, who)
	default:
		t.see(model.Writes, who)
	}
}

func deadlock(err error) bool {
	return strings.Contains(err.Error(), "1213") || strings.Contains(err.Error(), "40P01")
}

// Answered makes dbGate a witness.
func (g dbGate) Answered(c simdb.Call, affected int64, err error) {
	if t := g.w.gate.trace; t != nil && !g.w.gate.isDead(g.p) {
		t.answered(connOf(g.p, c), c.Text, affected, err)
	}
}
