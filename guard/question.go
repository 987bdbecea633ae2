package guard

import (
	"sync"
	"time"

	"github.com/belaygo/belay/lock"
)

// askTime is how long the engine may take to answer a question, and how long the answer
// is shared.
const askTime = 100 * time.Millisecond

// A question is who holds the key of a line. The members whose waits end share it, so a
// crowd of them does not become a crowd of requests.
type question struct {
	mu     sync.Mutex
	holder lock.Holder
	until  time.Time // the answer is shared until then
}

// answer returns who holds the key of c, as far as the engine says.
func (q *question) answer(c *call) lock.Holder {
	q.mu.Lock()
	defer q.mu.Unlock()
	if time.Now().After(q.until) {
		q.holder = c.inspect()
		q.until = time.Now().Add(askTime)
	}
	return q.holder
}

// inspect asks the engine who holds the key. The context of a caller whose wait has ended may
// have ended, too.
func (c *call) inspect() lock.Holder {
	unknown := lock.Holder{Place: lock.Place{Slot: -1}}
	if c.guard.outages.on(c.key) != nil {
		return unknown
	}
	ctx, cancel := detached(c.ctx, askTime)
	defer cancel()
	holder, err := inspect(ctx, c.guard.locker.Engine(), c.key)
	if err != nil {
		return unknown
	}
	return holder
}
