package incident_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/notify"
)

const (
	oldMaster = "10.0.0.1:6379"
	newMaster = "10.0.0.4:6379"
	elsewhere = "10.0.0.9:6379"
	slot      = 8461
	shard     = "5461-10922"
)

func TestExplain(t *testing.T) {
	type events = []notify.Event
	other := func(change func(*notify.Event)) notify.Event {
		return overlap(func(ev *notify.Event) {
			ev.ID, ev.Owner, ev.Instance, ev.HolderAtConflict = "2", "b:1", "orders-2", ""
			ev.Verdict, ev.Outcome = notify.VerdictLost, notify.OutcomeCommitted
			if change != nil {
				change(ev)
			}
		})
	}
	degraded := func(at float64, node string) notify.Event {
		return notify.Event{ID: "3", Service: "orders", Instance: "orders-3", Verdict: notify.VerdictDegraded, Outcome: notify.OutcomeCommitted,
			CaughtAt: sec(at), Place: notify.Place{Node: node, Slot: slot}, Count: 1}
	}
	begun := func(at float64, node string) notify.Event {
		ev := degraded(at, node)
		ev.ID, ev.Outcome = "4", notify.OutcomeUnknown
		return ev
	}
	tests := []struct {
		name       string
		event      notify.Event
		unwatched  bool
		timeline   []watch.Entry
		others     events
		cause      incident.Cause
		confidence incident.Confidence
		rows       []string // what the evidence must say
		lacks      string   // what it must not say
	}{
		// failover
		{name: "failover", event: overlap(nil), timeline: []watch.Entry{down(-4, 1), failover(-2)},
			cause: incident.Failover, confidence: incident.High, rows: []string{"failover at -2", "2s before the event", "down at -4"}},
		{name: "failover seen after the event", event: overlap(nil), timeline: []watch.Entry{failover(0.9)},
			cause: incident.Failover, confidence: incident.High, rows: []string{"900ms after the event"}},
		{name: "failover, old master silent", event: overlap(nil), timeline: []watch.Entry{down(-4, 0), failover(-2)},
			cause: incident.Failover, confidence: incident.Medium, rows: []string{"died or was cut off"}},
		{name: "failover, old master back as a new process", event: overlap(nil),
			timeline: []watch.Entry{down(-4, 1), failover(-2), up(-5, 8, 0), restart(8)},
			cause:    incident.Failover, confidence: incident.High},
		{name: "failover before the lock was granted", event: overlap(nil), timeline: []watch.Entry{failover(-20)},
			cause: incident.Unknown, confidence: incident.Low},
		{name: "failover after the event", event: overlap(nil), timeline: []watch.Entry{failover(30)},
			cause: incident.Unknown, confidence: incident.Low},
		{name: "granted by the new master", event: overlap(func(ev *notify.Event) { ev.Place.Node = newMaster }),
			timeline: []watch.Entry{failover(-4.9)}, cause: incident.Unknown, confidence: incident.Low},
		{name: "failover of another shard", event: overlap(nil),
			timeline: []watch.Entry{entry(watch.Failover, -2, func(e *watch.Entry) { e.Node, e.Peer, e.Shard = elsewhere, "10.0.0.8:1", "0-5460" })},
			cause:    incident.Unknown, confidence: incident.Low},
		{name: "renewed since the failover", event: overlap(func(ev *notify.Event) {
			ev.AcquiredAt, ev.Deadline = sec(-60), sec(26)
		}), timeline: []watch.Entry{failover(-30)}, cause: incident.Unknown, confidence: incident.Low},
		{name: "lost at the release", event: overlap(func(ev *notify.Event) {
			ev.Verdict, ev.Outcome, ev.HolderAtConflict = notify.VerdictLost, notify.OutcomeCommitted, ""
		}), timeline: []watch.Entry{down(-4, 1), failover(-2)}, cause: incident.Failover, confidence: incident.High},
		{name: "failover without a word of the holder", event: overlap(func(ev *notify.Event) {
			ev.Verdict, ev.HolderAtConflict, ev.Loss = notify.VerdictOverlap, notify.HolderUnknown, ""
		}), timeline: []watch.Entry{down(-4, 1), failover(-2)}, cause: incident.Failover, confidence: incident.Medium},

		// restart with loss
		{name: "restart", event: overlap(nil), timeline: []watch.Entry{restart(-2)},
			cause: incident.Restart, confidence: incident.High, rows: []string{"restart at -2"}},
		{name: "restart before a failover", event: overlap(nil), timeline: []watch.Entry{restart(-3), failover(-1)},
			cause: incident.Restart, confidence: incident.High},
		{name: "restart that kept its keys", event: overlap(nil), timeline: []watch.Entry{
			entry(watch.Restart, -2, func(e *watch.Entry) {
				e.Numbers = map[string]int64{watch.WasMaster: 1, watch.KeysBefore: 10, watch.KeysAfter: 10}
			})}, cause: incident.Restart, confidence: incident.Medium},
		{name: "restart of a replica", event: overlap(nil), timeline: []watch.Entry{
			entry(watch.Restart, -2, func(e *watch.Entry) { e.Node = newMaster })}, cause: incident.Unknown, confidence: incident.Low},
		{name: "restart of another shard", event: overlap(nil), timeline: []watch.Entry{on(elsewhere, restart(-2))},
			cause: incident.Unknown, confidence: incident.Low},
		{name: "process gone and not back", event: overlap(unrenewed), timeline: []watch.Entry{down(-20, 1)},
			cause: incident.Restart, confidence: incident.Medium, rows: []string{"not seen to come back"}},

		// eviction
		{name: "eviction", event: overlap(nil), timeline: []watch.Entry{evicted(-1)},
			cause: incident.Eviction, confidence: incident.Medium, rows: []string{"eviction at -1", "does not tell which"}},
		{name: "eviction elsewhere", event: overlap(nil), timeline: []watch.Entry{on(elsewhere, evicted(-1))},
			cause: incident.Unknown, confidence: incident.Low},
		{name: "eviction long before", event: overlap(nil), timeline: []watch.Entry{evicted(-9)},
			cause: incident.Unknown, confidence: incident.Low},
		{name: "eviction of one who did not renew", event: overlap(unrenewed), timeline: []watch.Entry{evicted(-15)},
			cause: incident.Unknown, confidence: incident.Low},

		// partition
		{name: "old master lived on", event: overlap(nil), timeline: []watch.Entry{down(-4, 0), failover(-2), up(-6, 9, 1)},
			cause: incident.Partition, confidence: incident.High, rows: []string{"failover at -2", "up at 9"}},
		{name: "old master lived on, and is silent again", event: overlap(nil),
			timeline: []watch.Entry{down(-4, 0), failover(-2), up(-6, 9, 1), down(12, 0)},
			cause:    incident.Partition, confidence: incident.High, rows: []string{"up at 9", "down at 12"}},
		{name: "two masters", event: overlap(nil), timeline: []watch.Entry{failover(-2),
			entry(watch.Split, -1.5, func(e *watch.Entry) { e.Peer = newMaster })},
			cause: incident.Partition, confidence: incident.High, rows: []string{"split at -1.5"}},
		{name: "two masters, granted by the new one", event: overlap(func(ev *notify.Event) { ev.Place.Node = newMaster }),
			timeline: []watch.Entry{failover(-7), entry(watch.Split, -1.5, func(e *watch.Entry) { e.Peer = newMaster })},
			cause:    incident.Partition, confidence: incident.Medium, rows: []string{"split at -1.5"}},
		{name: "has no answer from another", event: overlap(nil),
			timeline: []watch.Entry{entry(watch.Split, -1.5, func(e *watch.Entry) { e.Node, e.Peer = newMaster, oldMaster })},
			cause:    incident.Unknown, confidence: incident.Low, rows: []string{"answered guard-monitor"}},
		{name: "cut off for a while", event: overlap(unrenewed), timeline: []watch.Entry{up(-38, -10, 1)},
			cause: incident.Partition, confidence: incident.High, rows: []string{"up at -10"}},
		{name: "still cut off", event: overlap(unrenewed), timeline: []watch.Entry{down(-30, 0)},
			cause: incident.Partition, confidence: incident.Medium, rows: []string{"when it answers again"}},
		{name: "too short a silence", event: overlap(unrenewed), timeline: []watch.Entry{up(-22, -20, 1)},
			cause: incident.Partition, confidence: incident.Medium, rows: []string{"no failover, restart, eviction or partition"}},
		{name: "a silence takes no lock away", event: overlap(nil), timeline: []watch.Entry{up(-25, -1, 1)},
			cause: incident.Unknown, confidence: incident.Low, rows: []string{"up at -1"}},
		{name: "cut off from the holder alone", event: overlap(unrenewed),
			cause: incident.Partition, confidence: incident.Medium, rows: []string{"renewals went without an answer", "answered guard-monitor"}},
		{name: "cut off, unwatched", event: overlap(unrenewed), unwatched: true,
			cause: incident.Unknown, confidence: incident.Low, rows: []string{"not among the nodes"}},

		// overrun
		{name: "overrun", event: overlap(expired), cause: incident.Overrun, confidence: incident.High,
			rows: []string{"did not renew it until", "answered guard-monitor"}},
		{name: "overrun, unwatched", event: overlap(expired), unwatched: true, cause: incident.Overrun, confidence: incident.Medium,
			rows: []string{"not among the nodes"}},
		{name: "overrun, Redis not well either", event: overlap(expired), timeline: []watch.Entry{failover(-30)},
			cause: incident.Overrun, confidence: incident.Medium, rows: []string{"failover at -30"}},
		{name: "overrun of a short lock", event: overlap(func(ev *notify.Event) {
			expired(ev)
			ev.TTL, ev.AcquiredAt, ev.Deadline = time.Second, sec(-3), sec(-2.1)
		}), cause: incident.Overrun, confidence: incident.Medium},
		{name: "held for too long", event: overlap(func(ev *notify.Event) { ev.Verdict, ev.Loss = notify.VerdictLost, notify.LossMaxHold }),
			cause: incident.Overrun, confidence: incident.High, rows: []string{"longer than its limit"}},
		{name: "overrun told by an older library", event: overlap(func(ev *notify.Event) {
			expired(ev)
			ev.Loss, ev.Deadline = "", time.Time{}
		}), cause: incident.Overrun, confidence: incident.Low},

		// somebody else wrote
		{name: "bypass", event: overlap(intruded), cause: incident.Bypass, confidence: incident.Medium,
			rows: []string{"somebody wrote without a valid lock", "answered guard-monitor", "no other holder"}},
		{name: "bypass, unwatched", event: overlap(intruded), unwatched: true, cause: incident.Unknown, confidence: incident.Low},
		{name: "bypass, watcher refused by another node", event: overlap(intruded), timeline: []watch.Entry{entry(watch.Watching, -3, func(e *watch.Entry) {
			e.Node = newMaster
		})}, cause: incident.Bypass, confidence: incident.Medium},
		{name: "bypass, watcher blind", event: overlap(intruded), timeline: []watch.Entry{entry(watch.Watching, -3, nil)},
			cause: incident.Unknown, confidence: incident.Low, rows: []string{"watching at -3"}},
		{name: "failover may have let one through", event: overlap(intruded), timeline: []watch.Entry{failover(-2)},
			cause: incident.Failover, confidence: incident.Low, rows: []string{"nobody has reported", "failover at -2"}},
		{name: "late holder after a failover", event: overlap(func(ev *notify.Event) {
			intruded(ev)
			ev.Place.Node = newMaster
		}), timeline: []watch.Entry{down(-6, 1), failover(-5.5)},
			others: events{other(func(ev *notify.Event) { ev.AcquiredAt, ev.CaughtAt = sec(-12), sec(1) })},
			cause:  incident.Failover, confidence: incident.High, rows: []string{"order:1", "failover at -5.5"}},
		{name: "late holder that overran", event: overlap(intruded), others: events{other(func(ev *notify.Event) {
			expired(ev)
			ev.Outcome = notify.OutcomeCommitted
		})}, cause: incident.Overrun, confidence: incident.High, rows: []string{"did not renew it until"}},
		{name: "another holder that wrote nothing", event: overlap(intruded), others: events{other(func(ev *notify.Event) {
			expired(ev)
		})}, cause: incident.Bypass, confidence: incident.Medium},
		{name: "late holder that reports another of its keys", event: overlap(intruded), others: events{other(func(ev *notify.Event) {
			expired(ev)
			ev.Outcome, ev.Keys, ev.Key = notify.OutcomeCommitted, []string{ev.Key, "sku:7"}, "sku:7"
		})}, cause: incident.Overrun, confidence: incident.High, rows: []string{`lock on key "sku:7" was lost`, `held key "order:1", too`}},
		{name: "a holder of other keys", event: overlap(intruded), others: events{other(func(ev *notify.Event) {
			expired(ev)
			ev.Outcome, ev.Keys, ev.Key = notify.OutcomeCommitted, []string{"sku:7", "sku:8"}, "sku:7"
		})}, cause: incident.Bypass, confidence: incident.Medium},
		{name: "a holder of another key", event: overlap(intruded), others: events{other(func(ev *notify.Event) { ev.Key = "order:2" })},
			cause: incident.Bypass, confidence: incident.Medium},
		{name: "a holder long before", event: overlap(intruded), others: events{other(func(ev *notify.Event) {
			ev.AcquiredAt, ev.CaughtAt = sec(-80), sec(-60)
		})}, cause: incident.Bypass, confidence: incident.Medium},
		{name: "degraded peer", event: overlap(intruded), others: events{degraded(-3, oldMaster)},
			cause: incident.DegradedPeer, confidence: incident.Medium, rows: []string{"orders-3", "3s before the event"}},
		{name: "degraded peer of another shard", event: overlap(intruded), others: events{degraded(-3, elsewhere)},
			cause: incident.Bypass, confidence: incident.Medium},
		{name: "degraded long ago", event: overlap(intruded), others: events{degraded(-300, oldMaster)},
			cause: incident.Bypass, confidence: incident.Medium},
		{name: "degraded since long ago", event: overlap(intruded), others: events{begun(-300, oldMaster)},
			cause: incident.DegradedPeer, confidence: incident.Medium, rows: []string{"orders-3", "5m0s before the event"}},
		{name: "degraded until long ago", event: overlap(intruded), others: events{begun(-600, oldMaster), degraded(-300, oldMaster)},
			cause: incident.Bypass, confidence: incident.Medium},
		{name: "degraded since long ago, of two shards", event: overlap(intruded),
			others: events{begun(-600, oldMaster), begun(-600, elsewhere), degraded(-300, elsewhere)},
			cause:  incident.DegradedPeer, confidence: incident.Medium},
		{name: "not held, and a peer was degraded", event: overlap(nil), timeline: []watch.Entry{failover(-2)},
			others: events{degraded(-3, oldMaster)}, cause: incident.Failover, confidence: incident.High},

		// degraded
		{name: "degraded", event: degraded(0, oldMaster), cause: incident.DegradedPeer, confidence: incident.High},
		{name: "degraded by a dead node", event: degraded(0, oldMaster), timeline: []watch.Entry{down(-3, 1), failover(-1)},
			cause: incident.Failover, confidence: incident.Medium},
		{name: "degraded, evictions", event: degraded(0, oldMaster), timeline: []watch.Entry{evicted(-3)},
			cause: incident.DegradedPeer, confidence: incident.High},

		// refused
		{name: "refused by a dead node", event: refused(), timeline: []watch.Entry{down(-3, 1)},
			cause: incident.Restart, confidence: incident.Medium, rows: []string{"refused operations", "down at -3"}},
		{name: "refused in a failover", event: refused(), timeline: []watch.Entry{down(-3, 1), failover(-1)},
			cause: incident.Failover, confidence: incident.Medium},
		{name: "refused by a silent node whose place another took later", event: refused(), timeline: []watch.Entry{down(-1, 0), failover(3)},
			cause: incident.Failover, confidence: incident.Medium, rows: []string{"failover at 3", "3s after the event", "down at -1"}},
		{name: "refused by a node that stood still, and was replaced", event: refused(), timeline: []watch.Entry{down(-1, 0), failover(3), up(-2, 9, 1)},
			cause: incident.Partition, confidence: incident.Medium, rows: []string{"failover at 3", "up at 9"}},
		{name: "refused for long by a silent node whose place another took", event: refused(), timeline: []watch.Entry{down(-300, 0), failover(-296)},
			cause: incident.Failover, confidence: incident.Medium, rows: []string{"failover at -296"}},
		{name: "refused, with Redis well", event: refused(), cause: incident.Unreachable, confidence: incident.Medium,
			rows: []string{"answered guard-monitor"}},
		{name: "refused by a cluster that is down", event: refused(), timeline: []watch.Entry{entry(watch.ClusterDown, -3, nil)},
			cause: incident.Unreachable, confidence: incident.Low, rows: []string{"cluster_down at -3"}, lacks: "answered guard-monitor"},
		{name: "refused by a cluster that is down for long", event: refused(), timeline: []watch.Entry{entry(watch.ClusterDown, -300, nil)},
			cause: incident.Unreachable, confidence: incident.Low, rows: []string{"cluster_down at -300"}},
		{name: "refused by a cluster that was down", event: refused(),
			timeline: []watch.Entry{entry(watch.ClusterDown, -300, nil), entry(watch.ClusterOK, -200, nil)},
			cause:    incident.Unreachable, confidence: incident.Medium, rows: []string{"answered guard-monitor"}},
		{name: "refused for long by a dead node", event: refused(), timeline: []watch.Entry{down(-3000, 1)},
			cause: incident.Restart, confidence: incident.Medium, rows: []string{"down at -3000", "not seen to come back"}},
		{name: "refused for long by a silent node", event: refused(), timeline: []watch.Entry{down(-3000, 0)},
			cause: incident.Partition, confidence: incident.Medium, rows: []string{"down at -3000"}},
		{name: "refused long after a node came back", event: refused(), timeline: []watch.Entry{down(-3000, 1), up(-3001, -2000, 0)},
			cause: incident.Unreachable, confidence: incident.Medium},
		{name: "refused, unwatched", event: refused(), unwatched: true, cause: incident.Unreachable, confidence: incident.Low,
			rows: []string{"not among the nodes"}},

		// unknown
		{name: "gone with Redis healthy", event: overlap(nil), cause: incident.Unknown, confidence: incident.Low,
			rows: []string{"before its time was up", "answered guard-monitor"}},
		{name: "a lock with a prefix", event: overlap(func(ev *notify.Event) { ev.Place.Entry = "shop:order:1" }),
			cause: incident.Unknown, confidence: incident.Low, rows: []string{`(slot 8461) as "shop:order:1" for 30s`}},
		{name: "unwatched", event: overlap(nil), unwatched: true, timeline: []watch.Entry{failover(-2)},
			cause: incident.Unknown, confidence: incident.Low, rows: []string{"not among the nodes"}},
		{name: "unknown commit", event: overlap(func(ev *notify.Event) {
			ev.Verdict, ev.Outcome, ev.HolderAtConflict, ev.Loss = notify.VerdictUnknownCommit, notify.OutcomeUnknown, "", ""
		}), timeline: []watch.Entry{failover(-2)}, cause: incident.UnknownCommit, confidence: incident.High, rows: []string{"COMMIT"}},

		{name: "commits lost", event: overlap(func(ev *notify.Event) {
			ev.Verdict, ev.Outcome, ev.HolderAtConflict, ev.Loss = notify.VerdictCommitLost, notify.OutcomeUnknown, "", ""
			ev.Count, ev.Lost = 5, &notify.LostCommits{Server: "db-1", Now: "db-2"}
		}), timeline: []watch.Entry{failover(-2)}, cause: incident.CommitLost, confidence: incident.High, rows: []string{`missed 5 commits`}},

		{name: "dead letter", event: overlap(letter("m1", false)), timeline: []watch.Entry{failover(-2)},
			cause: incident.DeadLetter, confidence: incident.High, rows: []string{`Message "m1" (topic "mail"`}},
		{name: "undecided message", event: overlap(letter("m1", true)), timeline: []watch.Entry{failover(-2)},
			cause: incident.Undecided, confidence: incident.High, rows: []string{"may have taken effect"}},
		{name: "undecided call", event: overlap(undecided("c1")), timeline: []watch.Entry{failover(-2)},
			cause: incident.CallUndecided, confidence: incident.High, rows: []string{`the request with the id "c1" (operation "pay"`}},

		// removed from a Redis that is well
		{name: "flushed", event: overlap(nil), timeline: []watch.Entry{flushed(-2, watch.FlushAll)},
			cause: incident.Flushed, confidence: incident.High, rows: []string{"flush at -2"}},
		{name: "flushed, perhaps before the grant", event: overlap(nil), timeline: []watch.Entry{flushed(-4.5, watch.FlushAll)},
			cause: incident.Flushed, confidence: incident.Medium, rows: []string{"just before the lock was granted"}},
		{name: "flushed before the grant", event: overlap(nil), timeline: []watch.Entry{flushed(-9, watch.FlushAll)},
			cause: incident.Unknown, confidence: incident.Low},
		{name: "another node flushed", event: overlap(nil), timeline: []watch.Entry{on(elsewhere, flushed(-2, watch.FlushAll))},
			cause: incident.Unknown, confidence: incident.Low},
		{name: "FLUSHDB on a cluster", event: overlap(nil), timeline: []watch.Entry{flushed(-2, "flushdb")},
			cause: incident.Flushed, confidence: incident.High},
		{name: "FLUSHDB where there are many", event: overlap(func(ev *notify.Event) { ev.Place.Slot = -1 }),
			timeline: []watch.Entry{flushed(-2, "flushdb")}, cause: incident.Flushed, confidence: incident.Medium, rows: []string{"one database"}},
		{name: "deleted", event: overlap(nil), timeline: []watch.Entry{deleted(-2, 0)},
			cause: incident.Deleted, confidence: incident.Medium, rows: []string{"deletion at -2", "does not tell which"}},
		{name: "deleted, told at the conflict alone", event: overlap(func(ev *notify.Event) {
			ev.Loss, ev.HolderAtConflict = "", notify.HolderOther
		}), timeline: []watch.Entry{deleted(-2, 0)}, cause: incident.Deleted, confidence: incident.Medium},
		{name: "deleted, beside Redisson", event: overlap(nil), timeline: []watch.Entry{deleted(-2, 1)},
			cause: incident.Deleted, confidence: incident.Low},
		{name: "deleted where it becomes routine", event: overlap(nil), timeline: []watch.Entry{deleted(-2, 0), deleted(-1, 1)},
			cause: incident.Deleted, confidence: incident.Low},
		{name: "deleted where it goes on all the time", event: overlap(nil), timeline: []watch.Entry{deleted(-120, 1)},
			cause: incident.Deleted, confidence: incident.Low, rows: []string{"seen 2m0s before the event"}},
		{name: "deleted all the time, long ago", event: overlap(nil), timeline: []watch.Entry{deleted(-400, 1)},
			cause: incident.Unknown, confidence: incident.Low},
		{name: "deleted and flushed", event: overlap(nil), timeline: []watch.Entry{deleted(-2, 0), flushed(-2, watch.FlushAll)},
			cause: incident.Flushed, confidence: incident.High},
		{name: "deleted after a failover", event: overlap(nil), timeline: []watch.Entry{failover(-3), deleted(-2, 0)},
			cause: incident.Failover, confidence: incident.High},
		{name: "expired before its time", event: overlap(nil), timeline: []watch.Entry{entry(watch.Expiry, -2, nil)},
			cause: incident.Deleted, confidence: incident.Low, rows: []string{"shortened its time to live"}},
		{name: "the clock of Redis set forward", event: overlap(nil), timeline: []watch.Entry{clockSet(-2, 30_000)},
			cause: incident.Deleted, confidence: incident.Medium},
		{name: "the clock of Redis set by little", event: overlap(nil), timeline: []watch.Entry{clockSet(-2, 2000)},
			cause: incident.Unknown, confidence: incident.Low},
		{name: "the clock of Redis set back", event: overlap(nil), timeline: []watch.Entry{clockSet(-2, -30_000)},
			cause: incident.Unknown, confidence: incident.Low},
		{name: "a deletion does not keep from renewing", event: overlap(unrenewed), timeline: []watch.Entry{deleted(-20, 0)},
			cause: incident.Partition, confidence: incident.Medium},
		{name: "a flush does not stop a holder", event: overlap(expired), timeline: []watch.Entry{flushed(-20, watch.FlushAll)},
			cause: incident.Overrun, confidence: incident.High},
		{name: "a flush may have let one through", event: overlap(intruded), timeline: []watch.Entry{flushed(-6, watch.FlushAll)},
			cause: incident.Flushed, confidence: incident.Low, rows: []string{"nobody has reported"}},
		{name: "flushed after a restart", event: overlap(nil), timeline: []watch.Entry{restart(-4), flushed(-2, watch.FlushAll)},
			cause: incident.Restart, confidence: incident.High},
		{name: "flushed before a restart", event: overlap(nil), timeline: []watch.Entry{flushed(-3, watch.FlushAll), restart(-2)},
			cause: incident.Flushed, confidence: incident.High},
		{name: "evictions before a flush", event: overlap(nil), timeline: []watch.Entry{evicted(-4), flushed(-2, watch.FlushAll)},
			cause: incident.Flushed, confidence: incident.High},
		{name: "a deletion since the grant let nobody through", event: overlap(intruded), timeline: []watch.Entry{deleted(-2, 0)},
			cause: incident.Bypass, confidence: incident.Medium},
		{name: "a flush since the grant, of another database", event: overlap(intruded), timeline: []watch.Entry{flushed(-2, "flushdb")},
			cause: incident.Bypass, confidence: incident.Medium},
		{name: "a deletion, and nobody can be asked", event: overlap(func(ev *notify.Event) {
			ev.HolderAtConflict, ev.Loss = notify.HolderUnknown, ""
		}), timeline: []watch.Entry{deleted(-2, 0)}, cause: incident.Deleted, confidence: incident.Low},
		{name: "routine deletions accuse nobody", event: overlap(intruded), timeline: []watch.Entry{deleted(-6, 1)},
			cause: incident.Bypass, confidence: incident.Medium},

		// one accident, one cause
		{name: "not renewed before the takeover", event: overlap(unrenewed),
			timeline: []watch.Entry{down(-20, 1), failover(5), restartOver(-21, 9)},
			cause:    incident.Failover, confidence: incident.High, rows: []string{"failover at 5", "down at -20"}},
		{name: "not renewed, taken over, not back", event: overlap(unrenewed), timeline: []watch.Entry{down(-20, 1), failover(5)},
			cause: incident.Failover, confidence: incident.High, rows: []string{"failover at 5", "down at -20"}},
		{name: "not renewed, and taken over much later", event: overlap(unrenewed), timeline: []watch.Entry{down(-20, 1), up(-21, -15, 0), failover(5)},
			cause: incident.Restart, confidence: incident.Medium, rows: []string{"up at -15"}},
		{name: "process gone and back", event: overlap(unrenewed), timeline: []watch.Entry{down(-20, 1), up(-21, 5, 0)},
			cause: incident.Restart, confidence: incident.Medium, rows: []string{"up at 5"}, lacks: "not seen to come back"},
		{name: "cut off, and answers again", event: overlap(unrenewed), timeline: []watch.Entry{down(-30, 0), up(-31, -10, 1)},
			cause: incident.Partition, confidence: incident.High, lacks: "when it answers again"},
		{name: "cut off, and answers soon", event: overlap(unrenewed), timeline: []watch.Entry{down(-14, 0), up(-17, -12, 1)},
			cause: incident.Partition, confidence: incident.Medium, rows: []string{"up at -12"}, lacks: "when it answers again"},

		// clocks
		{name: "a holder whose clock was set back", event: overlap(intruded), others: events{other(func(ev *notify.Event) {
			expired(ev)
			ev.Outcome, ev.AcquiredAt, ev.CaughtAt = notify.OutcomeCommitted, sec(29), sec(1)
		})}, cause: incident.Overrun, confidence: incident.High},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := incident.Facts{Event: tt.event, Watched: !tt.unwatched, Cluster: "main", SeenAt: sec(60), From: sec(-600),
				Timeline: tt.timeline, Others: tt.others}
			x := incident.Explain(f)
			var text strings.Builder
			for _, e := range x.Evidence {
				fmt.Fprintf(&text, "%s %s %s\n", e.At.Format("05.000"), e.Node, said(e))
				if said(e) == "" || e.At.IsZero() {
					t.Errorf("empty row %+v", e)
				}
			}
			if x.Cause != tt.cause || x.Confidence != tt.confidence {
				t.Errorf("%s (%s), want %s (%s)\n%s", x.Cause, x.Confidence, tt.cause, tt.confidence, text.String())
			}
			for _, row := range tt.rows {
				if !strings.Contains(text.String(), row) {
					t.Errorf("the evidence lacks %q:\n%s", row, text.String())
				}
			}
			if tt.lacks != "" && strings.Contains(text.String(), tt.lacks) {
				t.Errorf("the evidence says %q:\n%s", tt.lacks, text.String())
			}
			if len(x.Evidence) == 0 {
				t.Errorf("no evidence: %+v", x)
			}
		})
	}
}

// TestExplainKnowsItsLimits: what was not looked at is not called healthy.
func TestExplainKnowsItsLimits(t *testing.T) {
	for name, f := range map[string]incident.Facts{
		"not looked at since": {SeenAt: sec(-3), From: sec(-600)},
		"never looked at":     {From: sec(-600)},
		"timeline too short":  {SeenAt: sec(60), From: sec(-2)},
	} {
		f.Event, f.Watched, f.Cluster = overlap(intruded), true, "main"
		x := incident.Explain(f)
		if x.Cause != incident.Unknown {
			t.Errorf("%s: %s %+v, want unknown", name, x.Cause, x.Evidence)
		}
		for _, e := range x.Evidence {
			if e.At.IsZero() {
				t.Errorf("%s: no time of %+v", name, e)
			}
		}
	}
}

func TestExplainAnything(t *testing.T) {
	for _, ev := range []notify.Event{{}, {Verdict: notify.VerdictOverlap}, {Verdict: "new", CaughtAt: caught, TTL: 1 << 62},
		overlap(func(ev *notify.Event) { ev.AcquiredAt, ev.Deadline = sec(1e9), time.Time{} })} {
		if x := incident.Explain(incident.Facts{Event: ev, Watched: true, Timeline: []watch.Entry{{}, failover(0)}}); x.Cause == "" {
			t.Errorf("no cause for %+v", ev)
		}
	}
}
