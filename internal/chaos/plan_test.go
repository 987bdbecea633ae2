package chaos_test

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"
)

// seedName is the variable that sets the seed of a run. The same seed makes the same
// plan of faults, and each call of a worker draws the same operation. When the two meet
// is up to the machine.
const seedName = "BELAY_CHAOS_SEED"

// seedOf returns the seed of the run, and prints it.
func seedOf(t *report) uint64 {
	seed := uint64(rand.Uint32())
	if text := os.Getenv(seedName); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", seedName, err)
		}
	}
	fmt.Printf("belay chaos: %s=%s %s=%d\n", databaseName, chosen(), seedName, seed)
	return seed
}

// draws returns the random numbers of one part of a run, which has a name of its own.
func draws(seed uint64, name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// A step is a fault of the plan.
type step struct {
	At   time.Duration // since the workers began, at the earliest
	Kind faultKind
	Whom uint32 // the number of its subject, modulo how many there are then
	Key  pick   // of a wipe
	For  time.Duration
}

func (s step) String() string {
	return fmt.Sprintf("%8.3fs %-24s whom %d key %v for %v", s.At.Seconds(), s.Kind, s.Whom, s.Key, s.For)
}

// A plan is what happens in a run: tracks of steps that are taken one after the other,
// each track beside the others.
type plan [][]step

// intensity says how much happens in a run.
type intensity struct {
	deck     []faultKind   // great faults, one after the other, in an order that is drawn for each round
	rest     time.Duration // between two great faults
	events   []faultKind   // likewise, on the way of the events
	restOf   time.Duration // between two of these
	between  time.Duration // at most, between two small faults: wipes and cuts
	cutOneIn int           // small faults
	local    bool          // the worker that was started last is killed, and one shard fails over, for the others to live in peace
}

// lasts is for lasting. The next fault waits for the end of one.
var lasts = map[faultKind]time.Duration{pause: ttl + time.Second, failover: 4 * time.Second, databaseKilled: 4 * time.Second}

// lasting is how long a great fault takes, about.
func lasting(kind faultKind) time.Duration {
	if kind.ofBed() {
		return aWhile + 2*time.Second
	}
	return lasts[kind]
}

// newPlan draws whole rounds of great faults until d has passed, and the other faults
// beside them. It depends on its arguments only.
func newPlan(seed uint64, d time.Duration, in intensity) plan {
	great := rounds(draws(seed, "great faults"), d, in.deck, in.rest)
	if in.local {
		great = local(great, in.rest)
	}
	if n := len(great); n > 0 {
		d = max(d, great[n-1].At+lasting(great[n-1].Kind))
	}
	events := rounds(draws(seed, "faults of the events' way"), d, in.events, in.restOf)
	return plan{great, until(d, events), small(draws(seed, "small faults"), d, in)}
}

func rounds(r *rand.Rand, d time.Duration, deck []faultKind, rest time.Duration) (steps []step) {
	deck = slices.Clone(deck)
	for at := rest; at-rest < d && len(deck) > 0; {
		r.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		for _, kind := range deck {
			s := step{At: at, Kind: kind, Whom: r.Uint32(), For: time.Duration(r.IntN(1500)) * time.Millisecond}
			steps = append(steps, s)
			at += rest + lasting(kind)
		}
	}
	return steps
}

// local has kills and failovers hit the same all the time. It begins with two failovers:
// after these, both nodes of the shard have been masters. A client keeps what it has
// opened to a node that is no master any more for half an hour.
func local(steps []step, rest time.Duration) []step {
	begin := []step{{At: rest / 4, Kind: failover}, {At: rest/4 + lasts[failover], Kind: failover}}
	for i := range steps {
		switch steps[i].Kind {
		case kill:
			steps[i].Whom = workers - 1
		case failover:
			steps[i].Whom = 0
		}
	}
	return append(begin, steps...)
}

func small(r *rand.Rand, d time.Duration, in intensity) (steps []step) {
	for at := time.Duration(0); at < d; at += time.Duration(r.Int64N(int64(in.between))) {
		steps = append(steps, step{At: at, Kind: wipe, Key: drawPick(r)})
		if r.IntN(in.cutOneIn) == 0 {
			steps = append(steps, step{At: at, Kind: cut, Whom: r.Uint32()})
		}
	}
	return steps
}

// until returns the steps before d.
func until(d time.Duration, steps []step) []step {
	n, _ := slices.BinarySearchFunc(steps, d, func(s step, d time.Duration) int { return cmp.Compare(s.At, d) })
	return steps[:n]
}

// TestPlan checks that a seed is a plan, and a plan what was asked for.
func TestPlan(t *testing.T) {
	in := intensities[fierce]
	one, same, other := newPlan(7, time.Minute, in), newPlan(7, time.Minute, in), newPlan(8, time.Minute, in)
	if !reflect.DeepEqual(one, same) {
		t.Error("two plans of one seed differ")
	}
	if reflect.DeepEqual(one, other) {
		t.Error("two seeds make one plan")
	}
	n := make(map[faultKind]int)
	for i, track := range one {
		for j, s := range track {
			n[s.Kind]++
			if j > 0 && s.At < track[j-1].At {
				t.Errorf("track %d goes back in time: %v after %v", i, s, track[j-1])
			}
		}
	}
	for _, kind := range slices.Concat(in.deck, in.events, []faultKind{wipe, cut}) {
		if n[kind] == 0 {
			t.Errorf("no %s in a minute", kind)
		}
	}
}

// TestDraws checks that a call draws the same operation in each run of a seed.
func TestDraws(t *testing.T) {
	at := 3 * time.Second
	for i := range 100 {
		do := fmt.Sprintf("w0.1.%d", i)
		one, same := draw(draws(7, do), at, do), draw(draws(7, do), at, do)
		if one.key != same.key || one.kind != same.kind || one.wait != same.wait || one.takes != same.takes {
			t.Errorf("%s draws %v and %v", do, one, same)
		}
	}
}
