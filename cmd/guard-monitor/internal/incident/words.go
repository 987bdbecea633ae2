package incident

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/notify"
)

const maxQuoted = 128 // bytes of a foreign text in a row

func quote(s string) string { return strconv.Quote(text.Clip(s, maxQuoted)) }

// name shows ordinary names bare and quotes the rest, which could pass for words
// of the monitor's own.
func name(s string) string {
	ordinary := func(r rune) bool {
		return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("-_.:/@[]%", r)
	}
	if len(s) <= maxQuoted && strings.IndexFunc(s, func(r rune) bool { return !ordinary(r) }) < 0 {
		return s
	}
	return quote(s)
}

// clock keeps the zone in sight.
func clock(t time.Time) string { return t.UTC().Format("15:04:05.000 UTC") }

// itself is the row that says what the event says.
func (f Facts) itself() Evidence {
	ev := f.Event
	return Evidence{At: ev.CaughtAt, Node: text.Clip(ev.Instance, maxQuoted), Text: describe(ev)}
}

func describe(ev notify.Event) string {
	var b strings.Builder
	switch ev.Verdict {
	case notify.VerdictUnknownCommit:
		fmt.Fprintf(&b, "the database did not answer the COMMIT of key %s, so nobody knows whether it took effect; that the lock failed is not known", quote(ev.Key))
		return b.String()
	case notify.VerdictDegraded:
		if ev.Outcome == notify.OutcomeUnknown {
			fmt.Fprintf(&b, "%s began to work without the lock, since Redis could not be asked", quote(ev.Service))
		} else {
			fmt.Fprintf(&b, "%s can ask Redis for the lock again; it had worked without", quote(ev.Service))
		}
		return b.String()
	case notify.VerdictUnavailable:
		fmt.Fprintf(&b, "%s refused operations, since their lock could not be acquired", quote(ev.Service))
		return b.String()
	case notify.VerdictOverlap:
		fmt.Fprintf(&b, "two callers wrote under key %s at once, and the database refused this one", quote(ev.Key))
	default:
		fmt.Fprintf(&b, "the lock on key %s was lost while its holder worked (%s)", quote(ev.Key), ev.Outcome)
	}
	if !ev.AcquiredAt.IsZero() {
		fmt.Fprintf(&b, "; granted at %s", clock(ev.AcquiredAt))
		if ev.Place.Node != "" {
			fmt.Fprintf(&b, " by %s", name(ev.Place.Node))
		}
		if ev.Place.Slot >= 0 && ev.Place.Node != "" {
			fmt.Fprintf(&b, " (slot %d)", ev.Place.Slot)
		}
		if ev.Place.Entry != "" {
			fmt.Fprintf(&b, " as %s", quote(ev.Place.Entry))
		}
		fmt.Fprintf(&b, " for %v, %v before the event", ev.TTL, ev.CaughtAt.Sub(ev.AcquiredAt).Round(time.Millisecond))
	}
	b.WriteString(loss(ev))
	switch ev.HolderAtConflict {
	case notify.HolderSelf:
		b.WriteString("; at the conflict the key was still this caller's, so somebody wrote without a valid lock")
	case notify.HolderOther:
		b.WriteString("; at the conflict another caller had the key")
	case notify.HolderNone:
		b.WriteString("; at the conflict nobody had the key")
	case notify.HolderUnknown:
		b.WriteString("; who had the key at the conflict could not be asked")
	}
	return b.String()
}

func loss(ev notify.Event) string {
	switch ev.Loss {
	case notify.LossExpired:
		return fmt.Sprintf("; its holder did not renew it until %s, when it could no longer be believed in, and went on %v later",
			clock(ev.Deadline), ev.CaughtAt.Sub(ev.Deadline).Round(time.Millisecond))
	case notify.LossUnrenewed:
		return fmt.Sprintf("; the holder's renewals went without an answer until %s, when it could no longer be believed in", clock(ev.Deadline))
	case notify.LossGone:
		return "; it was gone, or another's, before its time was up"
	case notify.LossMaxHold:
		return "; its holder had it for longer than its limit allows"
	}
	return ""
}

// rows puts a fault in words.
func (f Facts) rows(x fault) []Evidence {
	var rows []Evidence
	slices.SortStableFunc(x.rows, func(a, b watch.Entry) int { return a.At.Compare(b.At) })
	for _, e := range x.rows {
		rows = append(rows, Evidence{At: e.At, Node: e.Node, Numbers: e.Numbers,
			Text: e.Text + ", " + f.before(e.At)})
	}
	for _, note := range x.notes {
		rows = append(rows, Evidence{At: x.at, Node: x.rows[0].Node, Text: note})
	}
	return rows
}

// before says how long before the event something was seen.
func (f Facts) before(at time.Time) string {
	d := f.Event.CaughtAt.Sub(at).Round(time.Millisecond)
	if d < 0 {
		return fmt.Sprintf("seen %v after the event", -d)
	}
	return fmt.Sprintf("seen %v before the event", d)
}

// nextStep says what to do now.
func nextStep(c Cause) string {
	switch c {
	case Failover:
		return "Find out why the old master ended (its log, the kernel's log), and whether the new one has a replica again. If locks must survive a failover, use redislock.Config.Replicas."
	case Restart:
		return "Find out why the Redis process ended, and give it replicas: without persistence a restart forgets every lock."
	case Eviction:
		return "Set maxmemory-policy noeviction on the Redis that keeps locks, or keep locks on a Redis of their own."
	case Flushed:
		return "Find who ran FLUSHALL or FLUSHDB: the evidence names the client if it is known. Keep locks on a Redis of their own, and take these commands away from everybody (ACL: -@dangerous)."
	case Deleted:
		return "Find who removes keys on that node: scripts and consoles of that time, CLIENT LIST, MONITOR for a moment. Locks need no cleaning up: they expire by themselves."
	case Partition:
		return "Look for what cut the node off or made it stand still: network, a suspended virtual machine, swapping, a slow command (SLOWLOG, LATENCY DOCTOR)."
	case Overrun:
		return "Look at the instance, not at Redis: long garbage collection, CPU limits, a suspended machine. Compare with its metrics at that time."
	case DegradedPeer:
		return "Find out why that instance cannot reach Redis. Until then its operations are guarded by the database alone."
	case Bypass:
		return "Find who writes this table outside guard.Do, or under another key: scripts, consoles, other services, a job that was forgotten."
	case Unreachable:
		return "Look at the network between the service and Redis, its limits of connections, passwords and certificates, and whether Redis rejects requests (OOM, READONLY, CLUSTERDOWN). guard-monitor reaches that Redis."
	case UnknownCommit:
		return "Check the rows of these keys by hand. Then look at the database and the network to it at that time: a restart, a failover, a proxy that cuts connections."
	case HeartbeatSilent:
		return silentStep
	case Unknown:
	}
	return "Read the evidence, the logs of the Redis node and of the instance at that time, and look who deletes keys (DEL, FLUSHALL, UNLINK)."
}

const silentStep = "Look whether the service runs and reaches its broker: as long as it is silent, its lock failures may go unseen."
