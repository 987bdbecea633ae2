package e2e_test

import (
	"syscall"
	"time"
)

// A fault strikes while sales are requested, and is over when it returns.
type fault struct {
	name   string
	strike func(*stage)
}

var (
	shopPaused      = fault{"a shop is paused past the lease of its lanes", (*stage).pauseShop}
	shopKilled      = fault{"a shop is killed", func(s *stage) { s.kill(s.pick(s.shops)) }}
	warehouseKilled = fault{"a warehouse is killed", func(s *stage) { s.kill(s.pick(s.warehouses)) }}
	warehouseCut    = fault{"the warehouse's connections to the broker are cut", func(s *stage) { s.toBroker[1].Cut() }}
)

// faults are those that need no servers of the run's own.
var faults = []fault{
	shopPaused,
	shopKilled,
	{"a shop is stopped", func(s *stage) { s.replace(s.pick(s.shops)) }},
	warehouseKilled,
	{"all warehouses but one are paused", (*stage).pauseWarehouses},
	{"a warehouse is stopped", func(s *stage) { s.replace(s.pick(s.warehouses)) }},
	{"the shop's connections to the broker are cut", func(s *stage) { s.toBroker[0].Cut() }},
	warehouseCut,
	{"the broker is away", (*stage).brokerAway},
	{"the connections to the shop's database are cut", func(s *stage) { s.toShop.Cut() }},
	{"the connections to the warehouse's database are cut", func(s *stage) { s.toWarehouse.Cut() }},
	{"the shop's database is away", (*stage).shopDatabaseAway},
}

// whileShipping lets a fault wait until a warehouse ships.
func whileShipping(f fault) fault {
	return fault{f.name, func(s *stage) {
		before := s.shipped()
		s.until("a warehouse ships", func() bool { return s.shipped() > before })
		f.strike(s)
	}}
}

// deaths are those of servers of the run's own.
var deaths = []fault{
	{"the shop's database is killed", func(s *stage) { s.mariadb.Kill(s.t); s.mariadb.Start(s.t) }},
	{"the warehouse's database is killed", func(s *stage) { s.postgres.Kill(s.t); s.postgres.Start(s.t) }},
	{"the broker is killed", func(s *stage) { s.rabbitmq.Kill(s.t); s.rabbitmq.Start(s.t) }},
}

// kill kills a process, and starts another one.
func (s *stage) kill(i *instance) {
	i.Kill()
	s.start(i)
}

// replace stops a process by SIGTERM, and starts another one.
func (s *stage) replace(i *instance) {
	s.end(i)
	s.start(i)
}

// pauseShop pauses a shop, which goes on when others have the lanes of its relay,
// while other faults strike.
func (s *stage) pauseShop() {
	if len(s.paused) > 0 {
		return
	}
	i := s.pick(s.shops)
	s.until("the shop has lanes", func() bool { return s.lanes(i) > 0 })
	i.Signal(syscall.SIGSTOP)
	s.paused = append(s.paused, i)
}

func (s *stage) lanes(i *instance) int { return count(s.shopDB, "belay_lane WHERE owner = ?", i.owner) }

// resume lets a shop go on whose lanes have gone to others.
func (s *stage) resume() {
	if len(s.paused) > 0 && s.lanes(s.paused[0]) == 0 {
		s.paused[0].Signal(syscall.SIGCONT)
		s.paused = nil
	}
}

// pauseWarehouses pauses the active consumer, as often as not, past the leases of its locks. By then the
// broker has given the queue to another one, which may have to wait: a process that is paused in a
// transaction keeps its rows.
func (s *stage) pauseWarehouses() {
	one := s.pick(s.warehouses)
	for _, i := range s.warehouses {
		if i != one {
			i.Signal(syscall.SIGSTOP)
		}
	}
	over := time.Now().Add(leaseOfLocks + 3*heartbeat)
	s.until("leases and heartbeats have ended", func() bool { return time.Now().After(over) })
	for _, i := range s.warehouses {
		i.Signal(syscall.SIGCONT)
	}
}

// brokerAway lets messages wait in the shop, until sales were made meanwhile.
func (s *stage) brokerAway() {
	for _, p := range s.toBroker {
		p.Refuse()
	}
	before := s.answered.Load()
	s.until("the shop sells without the broker", func() bool { return s.answered.Load() >= before+5 || s.allSold() })
	for _, p := range s.toBroker {
		p.Heal(s.t)
	}
}

// shopDatabaseAway refuses connections until customers have noticed.
func (s *stage) shopDatabaseAway() {
	s.toShop.Refuse()
	before := s.refused.Load()
	s.until("customers notice", func() bool { return s.refused.Load() >= before+5 || s.allSold() })
	s.toShop.Heal(s.t)
}
