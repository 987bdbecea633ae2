package call

import "testing"

// first is the way of a process up to its call.
func first(p string) []string {
	return []string{p + " gets the lock", p + " finds no claim", p + " finds nothing pending", p + " inserts P",
		p + " looks for the claim again", p + " commits the reservation", p + " calls"}
}

// finds is the way of a process that finds a pending call.
func finds(p string) []string { return []string{p + " gets the lock", p + " finds no claim"} }

func story(parts ...any) (names []string) {
	for _, part := range parts {
		switch part := part.(type) {
		case string:
			names = append(names, part)
		case []string:
			names = append(names, part...)
		}
	}
	return names
}

// A schedule has broken the first design. With the rule one of its steps cannot happen, or nothing
// is broken.
type schedule struct {
	name   string
	rule   Weakness // whose lack it needs
	other  bool
	breaks int
	steps  []string
}

const takesOver = "A finds a pending call whose lease is over"

var schedules = []schedule{
	{"a: an old program acknowledges what is pending", PendingInOnce, false, 11,
		story(first("A"), "an old program reads belay_once")},
	{"b: a failover of the lock lets two call", TakeoverWithoutLease, false, 6,
		story(first("A"), "the lock of A is lost", finds("B"), "B finds a pending call whose lease is over", "B takes over", "B calls")},
	{"c: settling fails for longer than the provider remembers", ResultNotStored, false, 4,
		story(first("A"), "the provider accepts the call of A", "A fails to settle", "A stores the result",
			"A makes the request again", finds("A"), takesOver, "A takes over", "A calls")},
	{"d: the calls end with the lock", CallEndsWithLock, false, 10,
		story(first("A"), "the lock of A is lost")},
	{"e: a repeat with another amount", NoPrint, true, 2,
		story(first("A"), "A dies", "the lease ends", finds("B"), "B finds a pending call whose lease is over", "B takes over", "B calls")},
	{"f: a new program encodes the input otherwise", PrintNotKept, true, 2,
		story(first("A"), "the provider fails for A", "A ends its lease", finds("B"), "B finds a pending call whose lease is over", "B takes over", "B calls")},
	{"g: a timeout is taken for a refusal, and the charge lands", TimeoutIsRefusal, false, 3,
		story(first("A"), "the time of the call of A is over", "A settles", "the provider executes a call whose caller has gone")},
	{"h: COMMIT 1 is unknown, and the call is made", CallBeforeResolve, false, 7,
		story(first("A")[:5], "A sends a COMMIT of the reservation that is lost", "A calls")},
	{"i: P is inserted behind another's transaction 2", NoSecondLook, false, 3,
		story(first("A"), "the provider accepts the call of A", "the lock of A is lost", finds("B"), "A settles",
			first("B")[2:6])},
	{"j: the claim is purged before Until", ClaimPurgedEarly, false, 3,
		story(first("A"), "the provider accepts the call of A", "A settles", "the Purger deletes the claim", first("B")[:6])},
}

func TestSchedules(t *testing.T) {
	for _, tt := range schedules {
		t.Run(tt.name, func(t *testing.T) {
			cfg := Config{Repeats: 2, Faults: 2, Other: tt.other, Weak: tt.rule}
			s, refused := Play(&cfg, tt.steps...)
			if refused != "" {
				t.Fatalf("without the rule this cannot happen: %s", refused)
			}
			if !s.breaks(tt.breaks) {
				t.Fatalf("without the rule I%d holds, and I%d are broken", tt.breaks, s.broken())
			}
			cfg.Weak = None
			if s, refused := Play(&cfg, tt.steps...); s.breaks(0) {
				t.Errorf("with the rule I%d are broken", s.broken())
			} else if refused != "" {
				t.Logf("the rule forbids: %s", refused)
			}
		})
	}
}
