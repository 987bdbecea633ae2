package payments_test

import (
	"context"
	"net/url"
	"strconv"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/testdb"
)

// A fault strikes while payments are requested, and is over when it returns.
type fault struct {
	name   string
	strike func(*stage)
}

// few is how many charges a fate of the provider is for.
const few = 5

var (
	keptBack = fault{"the provider charges and keeps its answers back for longer than Until", (*stage).keepBack}
	muted    = fault{"the provider charges and does not answer", func(s *stage) { s.fate(isMute, few) }}
	killed   = fault{"a service is killed while the provider charges", (*stage).killInCall}
	forgets  = fault{"the provider forgets what is pending", (*stage).forgetPending}
)

// faults are those that need no database of the run's own.
var faults = []fault{
	keptBack,
	muted,
	killed,
	{"a service is killed while the provider charges, again", (*stage).killInCall},
	{"a service is paused past its leases", (*stage).pause},
	{"a service is stopped", func(s *stage) { i := s.pick(); s.end(i); s.start(i) }},
	{"the provider is late", func(s *stage) { s.fate(isLate, few) }},
	{"the provider charges and answers 500", func(s *stage) { s.fate(isFailing, few) }},
	{"the provider dies between a charge and its answer", (*stage).providerDies},
	{"the provider is killed", func(s *stage) { s.provider.Kill(); s.startProvider() }},
	{"the provider is away", (*stage).providerAway},
	{"the locks of all payments are lost", (*stage).loseLocks},
	{"the connections to the database are cut", func(s *stage) { s.toDB.Cut() }},
	{"the database is away", (*stage).databaseAway},
}

// deaths are those of a database of the run's own.
var deaths = []fault{
	{"the database is killed", func(s *stage) { s.own.Kill(s.t); s.own.Start(s.t) }},
}

// fate sets the fate of the next charges. It has struck when the provider has made them.
func (s *stage) fate(fate string, charges int) {
	s.t.Helper()
	s.order("/fate", url.Values{"fate": {fate}, "charges": {strconv.Itoa(charges)}})
}

// noticed waits until customers have noticed a fault.
func (s *stage) noticed() {
	s.t.Helper()
	before := s.refused.Load()
	s.until("customers notice", func() bool { return s.refused.Load() >= before+few || s.allEnded() })
}

// keepBack lets the provider answer nobody until a payment is undecided.
func (s *stage) keepBack() {
	s.fate(isMute, -1)
	before := s.undecided.Load()
	s.until("a payment is undecided", func() bool { return s.undecided.Load() > before || s.allEnded() })
	s.fate("", 0)
}

// forgetPending lets the provider forget the ids of charges that are not answered.
func (s *stage) forgetPending() {
	s.fate(isMute, -1)
	before := s.charges()
	s.until("the provider charges", func() bool { return s.charges() > before+1 })
	s.order("/forget", nil)
	s.fate("", 0)
}

// killInCall kills a service while the provider makes a charge, as often as not for that service.
func (s *stage) killInCall() {
	s.until("the provider charges", func() bool { return s.working() != "0" || s.allEnded() })
	i := s.pick()
	i.Kill()
	s.start(i)
}

// pause pauses a service for longer than the leases of its locks and its calls.
func (s *stage) pause() {
	s.until("the provider charges", func() bool { return s.working() != "0" || s.allEnded() })
	i := s.pick()
	i.Signal(syscall.SIGSTOP)
	over := time.Now().Add(leaseOfLock + timeout + 4*endTimeout)
	s.until("the leases have ended", func() bool { return time.Now().After(over) })
	i.Signal(syscall.SIGCONT)
}

func (s *stage) providerDies() {
	s.fate(isDying, 1)
	s.until("the provider dies", func() bool { return s.provider.HasExited() || s.allEnded() })
	s.provider.Kill()
	s.startProvider()
}

func (s *stage) providerAway() {
	s.fate(isAway, -1)
	s.noticed()
	s.fate("", 0)
}

// loseLocks deletes the locks of the payments' requests.
func (s *stage) loseLocks() {
	engine := redis.NewClusterClient(&redis.ClusterOptions{Addrs: s.redis})
	defer engine.Close()
	for _, p := range s.payments[:s.admitted] {
		testdb.WantNil(s.t, engine.Del(context.Background(), request(p.no, p.cents).Key()).Err())
	}
}

func (s *stage) databaseAway() {
	s.toDB.Refuse()
	s.noticed()
	s.toDB.Heal(s.t)
}
