package dispatch_test

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/dispatch"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/receiver"
)

func keyed(r *dispatch.Route) { r.Keyed = true }

// change lets an incident change, and the message come.
func (n *night) change(state incident.State, change func(*incident.Incident)) {
	n.t.Helper()
	n.save("1", "orders", state, change)
	<-time.After(15 * time.Second) // on the bubble's clock
	synctest.Wait()
}

// wantOpen compares what is open to a receiver that knows alerts by their labels, and to one that
// knows groups.
func (n *night) wantOpen(alerts, groups int) {
	n.t.Helper()
	n.inbox.mu.Lock()
	defer n.inbox.mu.Unlock()
	open, groupsOpen := map[string]string{}, map[string]bool{}
	for _, m := range n.inbox.got {
		groupsOpen[m.GroupKey] = m.Status() == receiver.Firing
		if !groupsOpen[m.GroupKey] {
			delete(groupsOpen, m.GroupKey)
		}
		for _, a := range m.Alerts {
			open[a.Fingerprint()] = fmt.Sprint(a.Labels)
			if a.Status() == receiver.Resolved {
				delete(open, a.Fingerprint())
			}
		}
	}
	if len(open) != alerts || len(groupsOpen) != groups {
		n.t.Errorf("alerts %v are open and groups %v, want %d and %d", open, groupsOpen, alerts, groups)
	}
}

// What was sent as open under some labels ends under the same.
func TestLabelsChange(t *testing.T) {
	inBubble(t, keyed, func(n *night) {
		n.change(incident.New, func(i *incident.Incident) { i.Cause = incident.Unreachable })
		n.wantOpen(1, 1)
		n.change(incident.Ongoing, func(i *incident.Incident) { i.Cluster, i.Shard = "main", "0-5460" }) // a failover
		n.wantOpen(1, 1)
		n.stop()
		n.start()
		n.change(incident.Ongoing, func(i *incident.Incident) {
			i.Cluster, i.Shard, i.Effect.Unknown = "main", "0-5460", 1
		})
		n.wantOpen(1, 1)
		n.change(incident.Resolved, func(i *incident.Incident) { i.Cluster, i.Rate.Doubted = "main", true })
		<-time.After(time.Hour)
		n.wantOpen(0, 0)
	})
}

// An end closes no group, and no alert, that another incident keeps open.
func TestLabelsOfAnother(t *testing.T) {
	for name, shard := range map[string]string{"another alert": "0-5460", "the same": ""} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, keyed, func(n *night) {
				unreachable := func(i *incident.Incident) { i.Cause = incident.Unreachable }
				n.change(incident.New, unreachable)
				n.save("2", "orders", incident.New, unreachable, func(i *incident.Incident) { i.Shard = shard })
				<-time.After(time.Hour)
				n.change(incident.Ongoing, func(*incident.Incident) {}) // a failover
				n.wantOpen(2, 2)
			})
		})
	}
}

// An end that does not arrive is sent again.
func TestEndIsSentAgain(t *testing.T) {
	inBubble(t, keyed, func(n *night) {
		n.change(incident.New, func(i *incident.Incident) { i.Cause = incident.Unreachable })
		n.inbox.setFail(func(m *receiver.Notification) error {
			if m.Status() == receiver.Resolved {
				return errors.New("busy")
			}
			return nil
		})
		n.change(incident.Ongoing, func(*incident.Incident) {})
		n.inbox.setFail(nil)
		<-time.After(time.Hour)
		n.wantOpen(1, 1)
	})
}

// An end that cannot be sent before guard-monitor stops keeps back the change, whatever else its group
// has to say.
func TestEndGoesFirst(t *testing.T) {
	for name, tt := range map[string]struct{ before, after [2]incident.Cause }{
		"of a group that is due":              {[2]incident.Cause{incident.Unreachable, incident.Unreachable}, [2]incident.Cause{incident.Failover, incident.Unreachable}},
		"of a group that is another's change": {[2]incident.Cause{incident.Unreachable, incident.Restart}, [2]incident.Cause{incident.Restart, incident.Failover}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, keyed, func(n *night) {
				save := func(state incident.State, causes [2]incident.Cause) {
					for k, cause := range causes {
						n.save(fmt.Sprint(k), "orders", state, func(i *incident.Incident) { i.Cause, i.Shard = cause, fmt.Sprint(k) })
					}
					<-time.After(15 * time.Second) // on the bubble's clock
					synctest.Wait()
				}
				save(incident.New, tt.before)
				n.wantOpen(2, len(slices.Compact(tt.before[:])))
				n.inbox.setFail(func(m *receiver.Notification) error {
					if m.GroupLabels["cause"] == string(incident.Unreachable) {
						return errors.New("busy")
					}
					return nil
				})
				save(incident.Escalating, tt.after)
				n.stop()
				n.inbox.setFail(nil)
				n.start()
				<-time.After(time.Hour)
				n.wantOpen(2, 2)
			})
		})
	}
}

// An end that has arrived is not sent again with the change, which is tried ever more seldom.
func TestEndIsSentOnce(t *testing.T) {
	for _, failed := range []error{&receiver.Error{Permanent: true}, errors.New("no answer")} {
		inBubble(t, keyed, func(n *night) {
			n.change(incident.New, func(i *incident.Incident) { i.Cause = incident.Unreachable })
			n.expect(0, "first notification: firing 1")
			tries := n.failFiring(failed)
			n.save("1", "orders", incident.Ongoing)
			n.expect(time.Hour, "all alerts resolved: resolved 1")
			if got := tries.Load(); got > 25 {
				t.Errorf("%v: the change was tried %d times in an hour", failed, got)
			}
			n.inbox.setFail(nil)
			n.expect(5*time.Minute+2*time.Second, "cause found: firing 1")
		})
	}
}

// What is new in the group of an end waits for its own message, and what is known there is sent with it.
func TestEndLeavesOutWhatIsNew(t *testing.T) {
	inBubble(t, keyed, func(n *night) {
		at := func(shard string) func(*incident.Incident) {
			return func(i *incident.Incident) { i.Cause, i.Shard = incident.Unreachable, shard }
		}
		n.save("2", "orders", incident.New, at("0-5460"))
		n.change(incident.New, at(""))
		n.expect(0, "first notification: firing 2")
		n.save("3", "orders", incident.New, at("5461-10922"))
		n.save("1", "orders", incident.Ongoing)
		n.expect(2*time.Second, "some alerts resolved: firing 2", "cause found: firing 1")
		n.expect(6*time.Minute, "new alerts added: firing 2")
	})
}

// What goes on under labels whose end has arrived is open again.
func TestLabelsGoBack(t *testing.T) {
	inBubble(t, keyed, func(n *night) {
		unreachable := func(i *incident.Incident) { i.Cause = incident.Unreachable }
		n.change(incident.New, unreachable)
		n.failFiring(&receiver.Error{Permanent: true})
		n.change(incident.Ongoing, func(*incident.Incident) {})
		n.wantOpen(0, 0)
		n.inbox.setFail(nil)
		n.change(incident.Ongoing, unreachable)
		n.wantOpen(1, 1)
	})
}

// What goes on is repeated with the end of its other labels once, and not again after a restart.
func TestRepeatUnderOtherLabels(t *testing.T) {
	inBubble(t, func(r *dispatch.Route) {
		r.Keyed, r.Continuous, r.GroupBy, r.GroupWait, r.GroupInterval, r.RepeatInterval = true, true, nil, 0, 0, time.Minute
	}, func(n *night) {
		n.save("1", "orders", incident.New)
		n.expect(2*time.Second, "first notification: firing 1")
		for _, shard := range []string{"0-5460", "5461-10922"} {
			n.save("1", "orders", incident.Ongoing, func(i *incident.Incident) { i.Shard = shard })
			n.expect(time.Minute+2*time.Second, "repeat interval elapsed: firing 2")
			n.expect(time.Minute+2*time.Second, "repeat interval elapsed: firing 1")
		}
		n.stop()
		n.start()
		n.expect(2*time.Second, "repeat interval elapsed: firing 1")
		if log := n.store.log; len(log) != 3 {
			t.Errorf("log %+v", log)
		}
	})
}

// failFiring lets all messages but those of ends fail, and counts them.
func (n *night) failFiring(failed error) *atomic.Int64 {
	var tries atomic.Int64
	n.inbox.setFail(func(m *receiver.Notification) error {
		if m.Status() == receiver.Resolved {
			return nil
		}
		tries.Add(1)
		return failed
	})
	return &tries
}

// A receiver that shows messages to people is sent the change alone.
func TestChangeAlone(t *testing.T) {
	inBubble(t, nil, func(n *night) {
		n.change(incident.New, func(i *incident.Incident) { i.Cause = incident.Unreachable })
		n.change(incident.Ongoing, func(*incident.Incident) {})
		n.expect(time.Minute, "first notification: firing 1", "cause found: firing 1")
	})
}
