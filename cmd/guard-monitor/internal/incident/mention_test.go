package incident

import (
	"testing"
	"time"
)

// TestBelieveKeepsTheSwitch: a better explanation replaces the rows that explain, and the same
// one is no news, whatever is said of a switch beside it.
func TestBelieveKeepsTheSwitch(t *testing.T) {
	s := Switch{Service: "orders", Between: Between{Epoch: 2, From: "redis", To: "sql"}, SeenAt: heardAt, OverAt: heardAt.Add(time.Minute)}
	i := Incident{Service: "orders", Cause: Failover, FirstAt: heardAt, LastAt: heardAt}
	explain := func(c Confidence, kinds ...Kind) (x Explanation) {
		x.Cause, x.Confidence = Failover, c
		for _, k := range kinds {
			x.Evidence = append(x.Evidence, Evidence{Kind: k, At: heardAt})
		}
		return x
	}
	i.believe(explain(Low, Reported), "1")
	if !i.mention(s) || i.mention(s) {
		t.Error("the switch is not said once")
	}
	if i.believe(explain(Low, Reported), "1") {
		t.Error("the same explanation is news")
	}
	if !i.believe(explain(High, Reported, Seen, NothingLost), "2") || len(i.Evidence) != 4 || i.Evidence[3].Kind != Switched {
		t.Errorf("evidence %+v", i.Evidence)
	}
	for len(i.Evidence) < maxEvidence {
		i.Evidence = append(i.Evidence, Evidence{Kind: Seen})
	}
	s.Epoch++
	if i.mention(s) || len(i.Evidence) > maxEvidence {
		t.Errorf("%d rows", len(i.Evidence))
	}
}

// TestMentionEnds: a row that says that locks still move is brought up to date, however soon
// the switch is over.
func TestMentionEnds(t *testing.T) {
	s := Switch{Service: "orders", Between: Between{Epoch: 2, From: "redis", To: "sql"}, SeenAt: heardAt}
	i := Incident{Service: "orders", Cause: Failover, FirstAt: heardAt, LastAt: heardAt}
	if !i.mention(s) {
		t.Error("the switch is not said")
	}
	s.OverAt = heardAt.Add(50 * time.Millisecond)
	if !i.mention(s) || !i.Evidence[0].To.Equal(s.OverAt) || len(i.Evidence) != 1 {
		t.Errorf("evidence %+v", i.Evidence)
	}
}

func TestWhenASwitchMeets(t *testing.T) {
	over := Switch{SeenAt: heardAt, OverAt: heardAt.Add(40 * time.Second)}
	moving := Switch{SeenAt: heardAt}
	for _, tt := range []struct {
		s        Switch
		from, to time.Duration
		want     bool
	}{
		{over, -time.Minute, -6 * time.Second, false},
		{over, -time.Minute, -4 * time.Second, true},
		{over, 10 * time.Second, 20 * time.Second, true},
		{over, -time.Minute, time.Minute, true},
		{over, 44 * time.Second, time.Minute, true},
		{over, 46 * time.Second, time.Minute, false},
		{moving, time.Hour, time.Hour, true},
		{moving, -time.Hour, -time.Minute, false},
		{Switch{SeenAt: heardAt, OverAt: heardAt}, 0, 0, false},
		{Switch{SeenAt: heardAt, OverAt: heardAt.Add(50 * time.Millisecond)}, 0, 0, false},
		{Switch{SeenAt: heardAt, OverAt: heardAt.Add(time.Second)}, 0, 0, true},
	} {
		if got := tt.s.meets(heardAt.Add(tt.from), heardAt.Add(tt.to)); got != tt.want {
			t.Errorf("%+v from %v to %v: %t", tt.s, tt.from, tt.to, got)
		}
	}
}
