package dispatch_test

import (
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/dispatch"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
)

const (
	firstOne  = "first notification: firing 1"
	unacked   = "not acknowledged: firing 1"
	resolved1 = "all alerts resolved: resolved 1"
)

func critical(i *incident.Incident) { i.Effect.Unknown = 1 }

func openedNow(i *incident.Incident) { i.OpenedAt = time.Now() }

func TestServices(t *testing.T) {
	inBubble(t, func(r *dispatch.Route) { r.Services = []string{"orders", "Point of Sale"} }, func(n *night) {
		n.save("1", "stock", incident.New)
		n.save("2", "stock", incident.Resolved)
		n.expect(time.Minute)
		n.save("3", "orders", incident.New)
		n.save("4", "Point of Sale", incident.New)
		n.expect(15*time.Second, firstOne, firstOne)
	})
	inBubble(t, func(r *dispatch.Route) { r.Services = []string{"orders", "*"} }, func(n *night) {
		n.save("1", "stock", incident.New)
		n.expect(15*time.Second, firstOne)
	})
}

// What becomes critical is sent then; what is no longer critical is sent when it is over.
func TestSeverities(t *testing.T) {
	inBubble(t, func(r *dispatch.Route) { r.Severities = []string{"critical"} }, func(n *night) {
		n.save("1", "orders", incident.New)
		n.save("2", "stock", incident.Resolved)
		n.expect(time.Minute)
		n.save("1", "orders", incident.Ongoing, critical)
		n.expect(15*time.Second, firstOne)
		n.save("1", "orders", incident.Ongoing)
		n.save("1", "orders", incident.Resolved)
		n.expect(6*time.Minute, resolved1)
	})
}

func TestEscalation(t *testing.T) {
	inBubble(t, func(r *dispatch.Route) { r.EscalateAfter = 5 * time.Minute }, func(n *night) {
		n.save("1", "orders", incident.New, openedNow)
		n.save("acked", "stock", incident.New, openedNow)
		n.save("short", "mail", incident.New, openedNow)
		n.expect(4 * time.Minute)
		n.save("acked", "stock", incident.Ongoing, openedNow, acked)
		n.save("short", "mail", incident.Resolved, openedNow)
		n.expect(50 * time.Second)
		n.expect(30*time.Second, unacked)
		n.save("1", "orders", incident.Ongoing, acked)
		n.expect(10 * time.Minute)
		n.save("1", "orders", incident.Resolved)
		n.expect(6*time.Minute, resolved1)
		n.save("1", "orders", incident.Regressed, openedNow)
		n.expect(4 * time.Minute)
		n.expect(2*time.Minute, unacked)
	})
}

// An escalation says why it comes.
func TestEscalationText(t *testing.T) {
	inBubble(t, func(r *dispatch.Route) { r.EscalateAfter = time.Minute }, func(n *night) {
		n.save("1", "orders", incident.New, openedNow)
		<-time.After(90 * time.Second) // on the bubble's clock
		n.inbox.mu.Lock()
		defer n.inbox.mu.Unlock()
		if len(n.inbox.got) != 1 || !strings.HasPrefix(n.inbox.got[0].Alerts[0].Annotations["description"], "nobody acknowledged this in 1m0s; cause failover") {
			t.Errorf("sent %+v", n.inbox.got)
		}
	})
}

// A restart neither begins the wait anew nor escalates again. A silence escalates nothing.
func TestEscalationRestarts(t *testing.T) {
	inBubble(t, func(r *dispatch.Route) { r.EscalateAfter = 5 * time.Minute }, func(n *night) {
		n.save("1", "orders", incident.New, openedNow)
		n.save("2", "stock", incident.New, openedNow, silenced)
		n.expect(3 * time.Minute)
		n.stop()
		n.start()
		n.expect(2*time.Minute+15*time.Second, unacked)
		n.stop()
		n.start()
		n.expect(10 * time.Minute)
		n.save("2", "stock", incident.Ongoing, func(i *incident.Incident) { i.OpenedAt = time.Now().Add(-10 * time.Minute) })
		n.expect(15*time.Second, unacked)
	})
}

// A clock that is set back by hours delays no escalation by these.
func TestEscalationAfterTheClockWasSetBack(t *testing.T) {
	inBubble(t, func(r *dispatch.Route) { r.EscalateAfter = 5 * time.Minute }, func(n *night) {
		n.save("1", "orders", incident.New, func(i *incident.Incident) { i.OpenedAt = time.Now().Add(9 * time.Hour) })
		n.expect(4 * time.Minute)
		n.expect(2*time.Minute, unacked)
	})
}
