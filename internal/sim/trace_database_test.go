package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	switch verb := verbOf(c); {
	case t.reads(c.conn, verb), t.broken[c.conn]:
	case c.text == "COMMIT":
		t.commit(c.conn, who, do)
	case do != run:
		t.unanswered(c)
	case verb == "START": // on PostgreSQL it is the first read that counts
		t.see(model.Begins, who)
	case !slices.Contains([]string{"SELECT", "INSERT", "UPDATE", claims, works, stores, record}, verb):
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
	switch verbOf(c) {
	case "CONNECT", "START", "BEGIN", opens:
		t.see(model.BeginLost, who)
	case "INSERT", "UPDATE", claims, works, stores, bounds:
		t.see(model.WriteLost, who)
	case "SELECT", record, savepoint:
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
	switch verbOf(c) {
	case "INSERT", "UPDATE", claims:
		t.seeOf(model.WriteLeft, c.op.caller(), t.rowIn(c.sql, c.db.Args))
	case works, stores:
		t.see(model.WorkLeft, c.op.caller())
	default:
		t.unanswered(c)
	}
}

// What statements of an operation that serves a request are, in place of their verbs.
const (
	claims    = "CLAIM"  // inserts the claim
	works     = "WORK"   // is a part of the operation
	stores    = "ANSWER" // stores its answer
	record    = "RECORD" // reads a claim, outside of an attempt
	opens     = "OPEN"   // begins a transaction for that, on MySQL
	savepoint = "SAVEPOINT"
	bounds    = "BOUND" // bounds the wait for a claim, on PostgreSQL
)

// verbOf names what a call does.
func verbOf(c *call) string {
	if c.db == nil {
		verb, _, _ := strings.Cut(c.text, " ")
		return verb
	}
	return verbIn(c.sql, c.op != nil && c.op.work.serves)
}

func verbIn(sql string, serves bool) string {
	verb, _, _ := strings.Cut(sql, " ")
	switch has := func(part string) bool { return strings.Contains(sql, part) }; {
	case has("SAVEPOINT"): // which may be released, as a lock is
		return savepoint
	case !serves:
	case has("LEFT JOIN belay_answer"):
		return record
	case sql == "START TRANSACTION":
		return opens
	case has("INSERT INTO `belay_once`"), has(`INSERT INTO "belay_once"`):
		return claims
	case has("INSERT INTO belay_answer"):
		return stores
	case verb == "INSERT":
		return works
	case has("SET LOCAL"):
		return bounds
	}
	return verb
}

// reads notes what a connection is used for, and reports whether that is to read a claim outside of
// an attempt.
func (t *tracer) reads(conn, verb string) bool {
	switch verb {
	case record, opens:
		t.readers[conn] = true
	case "START", "BEGIN":
		t.readers[conn] = false
	}
	return t.readers[conn]
}

// answered takes in the answer of the database to a statement.
func (t *tracer) answered(conn string, c simdb.Call, affected int64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.conns[conn]
	if o == nil {
		return
	}
	sql, key := c.Text, t.rowIn(c.Text, c.Args)
	begins, who := false, o.caller()
	verb := verbIn(sql, o.work.serves)
	switch verb {
	case "START", "BEGIN", opens:
		begins = true
	case "SELECT":
		begins = t.broken[conn] // perhaps: the server may have begun when it crashed
	}
	switch {
	case begins && err != nil:
		t.see(model.BeginLost, who)
	case t.broken[conn]:
	case verb == record && err == nil:
		t.see(model.ReadsClaim, who)
	case t.readers[conn]:
	case verb == "COMMIT":
		t.commitAnswered(conn, who, err)
	case verb == "SELECT" && !slices.ContainsFunc(questions, func(part string) bool { return strings.Contains(sql, part) }):
		t.seeOf(model.Reads, who, key)
	case verb == "INSERT", verb == "UPDATE", verb == claims:
		t.writeAnswered(who, key, affected, err)
	case verb == stores && err == nil, verb == works && err == nil && !o.work.answers:
		t.see(model.Works, who)
	case verb == works, verb == stores:
		t.workFailed(who, err)
	}
}

// workFailed takes in an error of a statement of an operation that serves a request.
func (t *tracer) workFailed(who int, err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		t.see(model.WorkLeft, who)
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

func (t *tracer) writeAnswered(who, key int, affected int64, err error) {
	switch victim := t.victims[who]; {
	case victim && err != nil && deadlock(err): // which was seen already
		delete(t.victims, who)
	case victim:
		t.err = cmp.Or(t.err, fmt.Errorf("%s was no victim of a deadlock after all", callersOf[who]))
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		t.seeOf(model.WriteLeft, who, key)
	case err != nil && deadlock(err):
		t.see(model.Deadlocked, who)
	case err != nil && timedOut(err) && t.w.serves:
		t.see(model.ClaimTaken, who)
	case err != nil && timedOut(err): // its transaction is rolled back
		t.see(model.WriteLost, who)
	case err != nil || affected == 0:
		t.judging[who] = true
		t.seeOf(model.WriteRefused, who, key)
	default:
		t.writes(who, key)
	}
}

// writes takes in a write that was answered. It may have waited for the victim of a deadlock, who is
// answered at the same time: one of them is heard first.
func (t *tracer) writes(who, key int) {
	if t.err != nil {
		return
	}
	t.seeOf(model.Writes, who, key)
	failed := t.err
	for victim := range callersOf {
		if t.err == nil || victim == who {
			continue
		}
		t.err = nil
		t.see(model.Deadlocked, victim)
		t.seeOf(model.Writes, who, key)
		t.victims[victim] = t.err == nil
	}
	if t.err != nil {
		t.err = failed
	}
}

func deadlock(err error) bool {
	return strings.Contains(err.Error(), "1213") || strings.Contains(err.Error(), "40P01")
}

// timedOut reports whether a statement has waited for a row for as long as it may.
func timedOut(err error) bool {
	return strings.Contains(err.Error(), "1205") || strings.Contains(err.Error(), "55P03")
}

// Answered makes dbGate a witness.
func (g dbGate) Answered(c simdb.Call, affected int64, err error) {
	if t := g.w.gate.trace; t != nil && !g.w.gate.isDead(g.p) {
		t.answered(connOf(g.p, c), c, affected, err)
	}
}
