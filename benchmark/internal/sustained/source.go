package sustained

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/belaygo/belay/benchmark/internal/load"
	"github.com/belaygo/belay/benchmark/internal/shop"
	"github.com/belaygo/belay/benchmark/internal/stage"
)

// How keys are chosen.
const (
	Hot     = "hot"     // the same for all users
	Uniform = "uniform" // each is as likely as any other
	Zipf    = "zipf"    // a few are used by most
)

// How an order is requested again.
const (
	None     = "none"     // it is not
	AtOnce   = "at-once"  // by another user at the same time
	Sequence = "sequence" // by the same user, after the answer
)

// hotRepeats is how many requests in a row are for one order when keys are hot: a
// key that is always the same would be inserted once.
const hotRepeats = 100

// source is the users of a step.
type source struct {
	stage   *stage.Stage
	method  shop.Method
	keys    string
	repeats string
	prefix  string
	items   []int64
	sent    atomic.Int64

	mu   sync.Mutex
	zipf *rand.Zipf
}

const (
	zipfExponent = 1.1
	zipfOrders   = 1_000_000 // order numbers that Zipf chooses from
)

func newSource(s *stage.Stage, m shop.Method, keys, repeats, prefix string, items []int64) *source {
	among := zipfOrders
	if m.Sells() {
		among = len(items)
	}
	random := rand.New(rand.NewPCG(1, 2)) // the same keys in every run
	return &source{
		stage: s, method: m, keys: keys, repeats: repeats, prefix: prefix, items: items,
		zipf: rand.NewZipf(random, zipfExponent, 1, uint64(max(1, among)-1)),
	}
}

// next returns what a user sends next.
func (s *source) next(user int) []load.Request {
	n := s.sent.Add(1) - 1
	request := func(i int64) load.Request {
		return load.Request{Addr: s.stage.Addr(user), Path: s.method.Path(s.value(i))}
	}
	switch {
	case s.method.Sells(), s.keys != Uniform, s.repeats == None:
		return []load.Request{request(n)}
	case s.repeats == AtOnce:
		return []load.Request{request(n / 2)} // two users draw it one after the other
	}
	first := request(n)
	return []load.Request{first, first}
}

// value is what the n-th request is about.
func (s *source) value(n int64) string {
	choice := n
	switch {
	case s.keys == Zipf:
		s.mu.Lock()
		choice = int64(s.zipf.Uint64()) //nolint:gosec // below zipfOrders, or the number of items
		s.mu.Unlock()
	case s.keys == Hot && s.method.Sells():
		choice = 0
	case s.keys == Hot:
		choice = n / hotRepeats
	case s.method.Sells():
		choice = rand.Int64N(int64(len(s.items)))
	}
	if s.method.Sells() {
		return strconv.FormatInt(s.items[choice], 10)
	}
	return fmt.Sprintf("%s-%09d", s.prefix, choice)
}
