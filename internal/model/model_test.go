package model

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/belaygo/belay/internal/model/call"
)

// quick returns the configurations with fewer faults, or all of them for `make model`.
func quick() (cfgs []*Config) {
	for _, cfg := range Configs() {
		switch {
		case os.Getenv("BELAY_MODEL") == "full":
		case cfg.Long:
			continue
		case cfg.Budget.Kill > 0 && cfg.Budget.Mute < 2:
			cfg.Faults = 2
		}
		cfgs = append(cfgs, cfg)
	}
	return cfgs
}

func TestModel(t *testing.T) {
	calls := make(chan call.Total, 1)
	go func() { calls <- call.Run(repeats()) }()
	reports := Run(quick(), runtime.GOMAXPROCS(0))
	for _, r := range reports {
		t.Log(r)
		for _, w := range r.Witnesses {
			logStory(t, w)
		}
	}
	for _, v := range reports.Violations() {
		t.Error(v)
	}
	for _, name := range reports.Never() {
		t.Errorf("never happens, so it is not checked: %s", name)
	}
	total := <-calls
	for _, problem := range total.Problems {
		t.Error(problem)
	}
	t.Logf("%s; %s", reports, total)
}

// repeats returns how often the request of package call is made again.
func repeats() uint8 {
	if os.Getenv("BELAY_MODEL") == "full" {
		return 3
	}
	return 1
}

// logStory logs a story where BELAY_MODEL=stories.
func logStory(t *testing.T, s *Story) {
	t.Helper()
	if os.Getenv("BELAY_MODEL") == "stories" {
		t.Logf("%s%s", s, s.Case())
	}
}

// TestInvariantsBite breaks the protocol in one place at a time. The invariant that the
// place is there for must see it.
func TestInvariantsBite(t *testing.T) {
	tests := []struct {
		name string
		weak Weakness
		want string
		cfg  Config
	}{
		{"no unique index", Weakness{NoUniqueIndex: true}, "I1", Config{Callers: two, Budget: Budget{Lose: 1}}},
		{"no comparison of the version", Weakness{NoVersionCompare: true}, "I2", Config{Callers: two, Update: true, Row: 1, Budget: Budget{Lose: 1}}},
		{"equal values prove a commit", Weakness{TrustEqualValues: true}, "I3", Config{Callers: two, Update: true, Row: 1, Budget: Budget{Lose: 1, Cut: 1}}},
		{"equal values prove a commit, insert", Weakness{TrustEqualValues: true}, "I3", Config{Callers: two, Budget: Budget{Lose: 1, Cut: 1}}},
		{"a COMMIT without an answer is taken for rolled back", Weakness{CutIsRolledBack: true}, "I3", Config{Callers: two, Budget: Budget{Cut: 1}}},
		{"the session of the lost COMMIT is not awaited", Weakness{LeaveSession: true}, "I3", Config{Callers: two, Postgres: true, Update: true, Row: 1, Budget: Budget{Cut: 1}}},
		{"what is visible counts as durable", Weakness{TrustVisible: true}, "I3", Config{Callers: two, Keyed: true, Budget: Budget{Cut: 1, Crash: 1}}},
		{"ErrUnknown releases the key", Weakness{ReleaseUnknown: true}, "I4", Config{Callers: three, Budget: Budget{Cut: 1}}},
		{"ErrUnknown lets the next caller of the process in", Weakness{OpenUnknown: true}, "I4", Config{Callers: three, Budget: Budget{Cut: 1, Lose: 1}}},
		{"the answer of the release is ignored", Weakness{NoReleaseQuestion: true}, "I5", Config{Callers: two, Budget: Budget{Lose: 1}}},
		{"a lock that was handed over is not looked at", Weakness{ForgetLoss: true}, "I5", Config{Callers: three, Update: true, Row: 1, Budget: Budget{Lose: 1}}},
		{"the row is not compared", Weakness{NoComparison: true}, "I5", Config{Callers: two, Budget: Budget{Write: 1}}},
		{"a swallowed conflict is not judged", Weakness{HideSwallowed: true}, "I5", Config{Callers: two, Swallow: true, Budget: Budget{Write: 1}}},
		{"an attempt forgets its own insert", Weakness{ForgetWrites: true}, "I5", Config{Callers: two, Budget: Budget{Deadlock: 1, Write: 1}}},
		{"the snapshot comes before the grant", Weakness{SnapshotBeforeGrant: true}, "I6", Config{Callers: two}},
		{"the snapshot comes from a node that is behind", Weakness{LaggingNode: true}, "I6", Config{Callers: two}},
		{"two events", Weakness{TwoEvents: true}, "I7", Config{Callers: two, Budget: Budget{Lose: 1}}},
		{"a late lock is forgotten", Weakness{ForgetOrphan: true}, "I8", Config{Callers: three, Refuse: true, Budget: Budget{Late: 1}}},
		{"a read ends an outage", Weakness{ProbeReads: true}, "I9", Config{Callers: three, DBOnly: true, Budget: Budget{Outage: 1}}},
		{"the relay deletes by id", Weakness{DeleteByID: true}, "I10", Config{Path: true, Budget: Budget{Crash: 1}}},
		{"the monitor acknowledges first", Weakness{AckBeforeStore: true}, "I10", Config{Path: true, Budget: Budget{Kill: 1}}},
		{"any refused write is a repeat", Weakness{JudgeWithoutEvidence: true}, "I11", Config{Callers: two, Budget: Budget{Lose: 1}}},
		{"a connection inside COMMIT is pooled", Weakness{PoolUnknown: true}, "I12", Config{Callers: two, Budget: Budget{Cut: 1}}},
		{"nothing stops a second claim", Weakness{NoUniqueIndex: true}, "I15", Config{Callers: two, Serves: ByOnce, Stamp: true, Budget: Budget{Lose: 1}}},
		{"any claim proves the commit", Weakness{TrustEqualValues: true}, "I15", Config{Callers: two, Serves: ByOnce, Stamp: true, Budget: Budget{Lose: 1, Cut: 1}}},
		{"a refusal commits what was written", Weakness{KeepRefused: true}, "I15", Config{Callers: two, Serves: Declined, Stamp: true}},
		{"the claim comes last", Weakness{ClaimLast: true}, "I16", Config{Callers: two, Serves: ByOnce, Stamp: true, Budget: Budget{Lose: 1}}},
		{"a claim under other keys is judged", Weakness{JudgeForeign: true}, "I6", Config{Callers: two, Serves: ByOnce, Stamp: true, Apart: true}},
		{"a purge is another's write", Weakness{PurgeIsChange: true}, "I6", Config{Callers: two, Serves: ByOnce, Stamp: true, Postgres: true, Budget: Budget{Purge: 1}}},
		{"a mark stands for the claim", Weakness{TrustMark: true}, "I11", Config{Callers: two, Serves: ByOnce, Stamp: true, Marks: true, Budget: Budget{Restore: 1}}},
		{"a caller joins a crew after its begin", Weakness{LateMember: true}, "I17", Config{Callers: three, Crew: true, Update: true, Row: 1, Budget: Budget{Lose: 1}}},
		{"a twin joins its crew", Weakness{TwinJoins: true}, "I3", Config{Callers: three, Crew: true}},
		{"members are answered before the COMMIT", Weakness{AnswerBeforeCommit: true}, "I3", Config{Callers: three, Crew: true, Update: true, Row: 1}},
		{"a crew raises the version by one", Weakness{OneVersion: true}, "I2", Config{Callers: three, Crew: true, Update: true, Row: 1}},
		{"the event of a crew counts one", Weakness{CountOne: true}, "I7", Config{Callers: three, Crew: true, Update: true, Row: 1, Budget: Budget{Lose: 1}}},
		{"keys are acquired in any order", Weakness{AnyOrder: true}, "I14", Config{Callers: two, Keys: [processes]uint8{3, 3}}},
		{"the snapshot comes before the last grant", Weakness{SnapshotBeforeGrant: true}, "I6", Config{Callers: two, Keys: [processes]uint8{3, 2}}},
		{"an event names the first key", Weakness{NameFirst: true}, "I6", Config{Callers: two, Keys: [processes]uint8{3, 2}, Budget: Budget{Lose: 1}}},
		{"only the first lock is looked at", Weakness{FirstLeaseOnly: true}, "I5", Config{Callers: two, Keys: [processes]uint8{3, 2}, Budget: Budget{Lose: 1}}},
		{"a refused caller keeps a key", Weakness{KeepSome: true}, "I18", Config{Callers: two, Keys: [processes]uint8{3, 2}, Refuse: true}},
		{"one of several keys is granted twice", Weakness{GrantTwice: true}, "I13", Config{Callers: two, Keys: [processes]uint8{3, 2}}},
		{"another's row is the claim", Weakness{RowIsRequest: true}, "I11", Config{Callers: two, Serves: ByOnce, Stamp: true, Budget: Budget{Meet: 1}}},
		{"overtaken is business", Weakness{OvertakenIsBusiness: true}, "I19", Config{Callers: two, Update: true, Row: 1, Shared: true, Budget: Budget{Lose: 1}}},
		{"overtaken is business, insert", Weakness{OvertakenIsBusiness: true}, "I19", Config{Callers: two, Shared: true, Budget: Budget{Lose: 1}}},
		{"own time is an outage", Weakness{ShortIsOutage: true}, "I20", Config{Callers: two, Budget: Budget{Short: 1}}},
		{"a leader is not watched", Weakness{LeaderUnwatched: true}, stuck, Config{Callers: three, Crew: true, Update: true, Row: 1, Budget: Budget{Hang: 1}}},
		{"a lock is granted twice", Weakness{GrantTwice: true}, "I13", Config{Callers: two}},
	}
	bitten := make(map[string]bool)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := tt.cfg
			cfg.Name = tt.name
			if r := Search(&cfg, ""); r.Violation != nil {
				t.Fatalf("broken without the weakness: %s", r.Violation)
			}
			cfg.Weak = tt.weak
			r := Search(&cfg, tt.want)
			if r.Violation == nil {
				t.Fatalf("%s is not broken in %d states", tt.want, r.States)
			}
			bitten[tt.want] = true
			t.Logf("%s is broken after %d steps, in %d states", tt.want, len(r.Violation.Steps), r.States)
			logStory(t, r.Violation)
		})
	}
	for _, v := range invariants {
		if !bitten[v.ID] {
			t.Errorf("no weakness shows that %s bites", v.ID)
		}
	}
}

// TestBlindSpotsAreNamed: what is excused here must be said there.
func TestBlindSpotsAreNamed(t *testing.T) {
	text, err := os.ReadFile("../../docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	guarantees := strings.Join(strings.Fields(string(text)), " ")
	for _, b := range blindspots {
		if !strings.Contains(guarantees, b.Says) {
			t.Errorf("%s: docs/guarantees.md does not say: %s", b.Name, b.Says)
		}
	}
}

// TestRefusedActionsChangeNothing checks what Search relies on.
func TestRefusedActionsChangeNothing(t *testing.T) {
	for _, cfg := range Configs() {
		s := start(cfg)
		walk(t, cfg, &s, 5)
	}
}

// walk goes a few steps in all directions.
func walk(t *testing.T, cfg *Config, s *State, steps int) {
	t.Helper()
	for i := range callers {
		for _, a := range actionsOf(cfg) {
			if !cfg.Path && cfg.Callers[i] == nobody || a.at != anywhere && s.Callers[i].PC != a.at {
				continue
			}
			after := *s
			switch happens := a.do(cfg, &after, i); {
			case !happens && after != *s:
				t.Fatalf("%q was refused and has changed the state", a.says)
			case happens && steps > 0:
				walk(t, cfg, &after, steps-1)
			}
		}
	}
}
