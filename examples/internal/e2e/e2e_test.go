package e2e_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/examples/twoservices"
	"github.com/belaygo/belay/internal/testamqp"
)

// ownFrom is the number of sales from which on a run has servers of its own.
const ownFrom = 2000

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

// TestTwoServices: each sale has one message and each message one effect, in the order of its
// item's sales, while all that there is fails in turn.
func TestTwoServices(t *testing.T) {
	t.Parallel()
	sales := int(number(t, "BELAY_E2E", 500))
	seed := number(t, "BELAY_E2E_SEED", uint64(time.Now().UnixNano()))
	t.Logf("BELAY_E2E=%d BELAY_E2E_SEED=%d", sales, seed)
	on, all := sharedServers, faults
	if sales >= ownFrom {
		on, all = ownServers, append(append([]fault(nil), faults...), deaths...)
	}
	s := newStage(t, on(t), seed, 40, twoservices.Declare)
	s.begin(roleShop, roleWarehouse, 3, 3)
	s.run(sales, s.plan(all, sales))
	s.settle()
	v := judgeTables(t, s.shopDB, s.warehouseDB)
	if !v.good(sales) {
		t.Errorf("%d sales: %+v", sales, v)
	}
	if n := count(s.shopDB, "belay_parked") + testamqp.Depth(t, s.amqp, queue+".dead"); n != 0 {
		t.Errorf("%d dead letters", n)
	}
	fmt.Fprintln(os.Stdout, v)
}

// plan returns faults in the order in which they strike: each of them once in each pass, in another
// order. What takes the lease of a relay's lanes comes first.
func (s *stage) plan(all []fault, sales int) (plan []fault) {
	plan = append(plan, shopPaused, shopKilled)
	strikes := max(len(all), sales/100)
	for len(plan) < strikes {
		for _, n := range s.rng.Perm(len(all)) {
			if f := all[n]; len(plan) >= len(all) || f.name != shopPaused.name && f.name != shopKilled.name {
				plan = append(plan, f)
			}
		}
	}
	return plan[:strikes]
}

// run lets customers request all sales, and strikes with the faults while they do.
func (s *stage) run(sales int, plan []fault) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer s.customers.Wait()
	defer cancel()
	began := time.Now()
	s.sell(ctx, sales)
	part := func(n int) int { return sales * n / (len(plan) + 2) }
	s.admit(part(1))
	for n, f := range plan {
		s.until("the next fault is due", func() bool { return s.answered.Load() >= int64(part(n)) })
		s.admit(part(n + 2)) // so many are sold under the fault
		f.strike(s)
		s.t.Logf("%6.1fs: %s: %d sold, %d shipped", time.Since(began).Seconds(), f.name, s.answered.Load(), s.shipped())
	}
	s.admit(sales)
	s.until("all is sold", s.allSold)
	s.t.Logf("%6.1fs: all sold, %d requests refused", time.Since(began).Seconds(), s.refused.Load())
}

// TestJudge: the judge finds what services do that are wrong on purpose.
func TestJudge(t *testing.T) {
	t.Parallel()
	together := func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(queue, true, false, false, false, amqp.Table{"x-queue-type": "quorum"})
		return err
	}
	for name, c := range map[string]struct {
		shop, warehouse string
		declare         func(*amqp.Channel) error
		plan            []fault
		found           func(verdict) bool
	}{
		"without the inbox": {
			roleShop, roleNoInbox, twoservices.Declare,
			[]fault{whileShipping(warehouseCut), whileShipping(warehouseKilled), whileShipping(warehouseCut)},
			func(v verdict) bool { return v.twice > 0 && v.lost == 0 },
		},
		"outside of the transaction": {
			roleOutside, roleWarehouse, twoservices.Declare,
			[]fault{shopKilled, shopKilled},
			func(v verdict) bool { return v.lost > 0 && v.twice == 0 },
		},
		"without the single active consumer": {
			roleShop, roleWarehouse, together,
			nil,
			func(v verdict) bool { return v.unordered > 0 && v.lost == 0 && v.twice == 0 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := sharedServers(t)
			const tries = 5 // a fault may strike while nothing is under way
			for seed := range uint64(tries) {
				var v verdict
				t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
					s := newStage(t, servers, seed, 4, c.declare)
					s.begin(c.shop, c.warehouse, 2, 2)
					s.run(150, c.plan)
					s.settle()
					v = judgeTables(t, s.shopDB, s.warehouseDB)
				})
				t.Log(v)
				if c.found(v) {
					return
				}
			}
			t.Error("the judge has not found it")
		})
	}
}
