package promises_test

import (
	"fmt"
	"sync"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testwait"
)

// handOvers has three nodes of a database hand n orders and one stock on to each other, and
// wants that a repeat is a repeat and that no lock has failed.
func handOvers(nodes []*env, n int) {
	first := nodes[0]
	first.t.Helper()
	first.create(&Stock{ID: 1, Left: 1000})
	for n := range n {
		no := fmt.Sprint("no-", n)
		for i := range nodes {
			e := nodes[(n+i)%len(nodes)]
			if err := e.Apply(bg, "order:"+no, guard.Insert(&Order{No: no})); i == 0 {
				wantNil(e.t, err)
			} else {
				wantIs(e.t, err, guard.ErrDuplicate)
			}
			wantNil(e.t, e.Apply(bg, "sku:1", guard.Update(&Stock{ID: 1}, take)))
		}
	}
	first.wantNoEvent()
	testwait.Until(first.t, "all is applied here", func() bool { return first.stock(1).Left == 1000-len(nodes)*n })
}

// thief returns what takes a lock away from e, once, and makes a change under it on another
// node.
func (e *env) thief(other *env) func(key string, change guard.Change) {
	var stolen sync.Once
	return func(key string, change guard.Change) {
		stolen.Do(func() {
			e.Forget(key)
			wantNil(e.t, other.Apply(bg, key, change))
		})
	}
}
