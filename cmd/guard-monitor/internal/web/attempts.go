package web

import (
	"crypto/sha256"
	"maps"
	"net/netip"
	"sync"
	"time"
)

// Failed logins that are forgiven: so many at once, and then one an interval. An address
// of IPv6 is its /64, all of which one person may have.
const (
	nameBurst    = 5 // with one name, from one address
	nameEvery    = 30 * time.Second
	addressBurst = 20 // from one address
	addressEvery = 3 * time.Second
	maxLimited   = 10_000 // names, and addresses, that are remembered
)

// attempts bounds how often logins fail. It is safe for concurrent use.
type attempts struct{ names, addresses limiter }

func newAttempts() *attempts {
	return &attempts{
		names:     limiter{burst: nameBurst, every: nameEvery, due: make(map[[sha256.Size]byte]time.Time)},
		addresses: limiter{burst: addressBurst, every: addressEvery, due: make(map[[sha256.Size]byte]time.Time)},
	}
}

// wait returns how long the next attempt must wait, 0 if it may be made now.
func (a *attempts) wait(address, name string, now time.Time) time.Duration {
	address = network(address)
	return max(a.names.wait(address+"\x00"+name, now), a.addresses.wait(address, now))
}

func (a *attempts) fail(address, name string, now time.Time) {
	address = network(address)
	a.names.fail(address+"\x00"+name, now)
	a.addresses.fail(address, now)
}

func network(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil || ip.Unmap().Is4() {
		return address
	}
	prefix, _ := ip.WithZone("").Prefix(64) //nolint:mnd // of one network; it fits IPv6
	return prefix.String()
}

// A limiter forgives burst failures of a key at once, and then one every interval. It
// forgets all of them when it has to remember too many keys.
type limiter struct {
	burst int
	every time.Duration

	mu  sync.Mutex
	due map[[sha256.Size]byte]time.Time // when all failures of a key are forgiven
}

func (l *limiter) wait(key string, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	owed := max(0, l.due[sha256.Sum256([]byte(key))].Sub(now))
	return max(0, owed-time.Duration(l.burst-1)*l.every)
}

func (l *limiter) fail(key string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.due) >= maxLimited {
		maps.DeleteFunc(l.due, func(_ [sha256.Size]byte, due time.Time) bool { return !due.After(now) })
	}
	if len(l.due) >= maxLimited {
		clear(l.due)
	}
	sum, due := sha256.Sum256([]byte(key)), now
	if last := l.due[sum]; last.After(now) {
		due = last
	}
	l.due[sum] = due.Add(l.every)
}
