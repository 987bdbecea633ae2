package payments_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/teststack"
)

const (
	// ownFrom is the number of payments from which on a run has databases of its own.
	ownFrom = 500
	// fewFaults is how many faults strike in a run of less.
	fewFaults = 8
)

// number returns what a variable says.
func number(t *testing.T, variable string, usual uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s is %q", variable, text)
	}
	return n
}

// TestPayments: each payment is charged once, and settled or listed, while all that there is fails in turn.
func TestPayments(t *testing.T) {
	t.Parallel()
	payments := int(number(t, "BELAY_PAYMENTS", 60))
	seed := number(t, "BELAY_E2E_SEED", uint64(time.Now().UnixNano()))
	t.Logf("BELAY_PAYMENTS=%d BELAY_E2E_SEED=%d", payments, seed)
	if payments < ownFrom {
		s := newStage(t, teststack.MySQL(t), nil, seed, roleService)
		s.play(payments, s.plan(faults, fewFaults))
		return
	}
	for _, server := range []string{"mariadb", "postgres"} {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			own := teststack.StartDatabase(t, "payments-"+server, server)
			s := newStage(t, own.DSN, own, seed, roleService)
			all := slices.Concat(faults, deaths)
			s.play(payments/2, s.plan(all, max(len(all), payments/100)))
		})
	}
}

// play lets customers pay under faults, and judges what is there at the end.
func (s *stage) play(payments int, plan []fault) {
	s.t.Helper()
	s.begin(3)
	s.run(payments, plan)
	s.settle()
	v := s.judge()
	if !v.good() || v.payments != payments || v.undecided == 0 || v.charges == 0 {
		s.t.Errorf("%d payments: %+v", payments, v)
	}
	fmt.Fprintln(os.Stdout, v)
}

// plan returns so many faults in the order in which they strike: each of them once in each pass. The one
// that leaves payments undecided is always among them.
func (s *stage) plan(all []fault, strikes int) (plan []fault) {
	plan = append(plan, keptBack)
	for len(plan) < strikes {
		for _, n := range s.rng.Perm(len(all)) {
			if len(plan) >= len(all) || all[n].name != keptBack.name {
				plan = append(plan, all[n])
			}
		}
	}
	plan = plan[:strikes]
	s.rng.Shuffle(strikes, func(i, j int) { plan[i], plan[j] = plan[j], plan[i] })
	return plan
}

// run lets customers request all payments, and strikes with the faults while they do.
func (s *stage) run(payments int, plan []fault) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer s.customers.Wait()
	defer cancel()
	began := time.Now()
	s.offer(payments)
	s.pay(ctx)
	part := func(n int) int { return payments * n / (len(plan) + 2) }
	s.admit(part(1))
	for n, f := range plan {
		s.until("the next fault is due", func() bool { return s.left.Load() <= int64(payments-part(n)) })
		s.admit(part(n + 2)) // so many are requested under the fault
		f.strike(s)
		s.t.Logf("%6.1fs: %s: %d requested, %d wait, %d undecided", time.Since(began).Seconds(), f.name, s.admitted, s.left.Load(), s.undecided.Load())
	}
	s.admit(payments)
	s.until("no customer waits", s.allEnded)
	s.t.Logf("%6.1fs: no customer waits, %d requests refused", time.Since(began).Seconds(), s.refused.Load())
}

// TestJudgeOfServices: the judge finds what services do that are wrong on purpose.
func TestJudgeOfServices(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		role  string
		plan  []fault
		found func(verdict) bool
	}{
		"new ids":                  {roleNewIDs, []fault{muted, muted}, func(v verdict) bool { return v.twice > 0 }},
		"by hand":                  {roleByHand, []fault{muted, killed}, func(v verdict) bool { return v.lost > 0 && v.unlisted > 0 && v.twice == 0 }},
		"until longer than memory": {roleLongUntil, []fault{forgets}, func(v verdict) bool { return v.twice > 0 && v.lost == 0 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const payments = 40
			s := newStage(t, teststack.MySQL(t), nil, 1, c.role)
			s.begin(2)
			s.run(payments, c.plan)
			s.settle()
			v := s.judge()
			t.Log(v)
			if !c.found(v) {
				t.Errorf("the judge has not found it: %+v", v)
			}
		})
	}
}
