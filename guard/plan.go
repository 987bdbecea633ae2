package guard

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/lock"
)

// maxKeys bounds the keys of one operation: each costs two requests to the engine, and
// whoever waits for one holds those before it.
const maxKeys = 16

// A plan is the keys of a call, before any is acquired.
type plan struct {
	main   string     // that Do was given
	keys   []planned  // all, in the order in which they are acquired
	one    [1]planned // most calls have one
	policy Policy     // of the guard, when the call began
	wait   time.Duration
	until  time.Time // when the wait for the keys ends, if there is one
}

// planned is one key of a plan, and what it is to the call.
type planned struct {
	key     string
	rows    []any         // that it protects
	request bool          // it is that of the request which the call serves: it protects nothing but the claim
	mark    time.Duration // for how long the first layer is to remember that what the key names is done
}

// fill lists the keys of a call in the order in which all processes acquire them:
// otherwise two callers could wait for each other. request is the key of the request that
// the call serves, "" if there is none.
func (p *plan) fill(request string, o *options) error {
	p.wait = o.wait
	p.keys = append(p.one[:0], planned{key: p.main, rows: o.protects})
	for _, a := range o.also {
		if k := p.find(a.key); k != nil {
			k.rows = append(slices.Clip(k.rows), a.rows...)
			continue
		}
		p.keys = append(p.keys, planned{key: a.key, rows: a.rows})
	}
	named := request != "" && p.main == request
	for i := range p.keys {
		k := &p.keys[i]
		k.request = request != "" && k.key == request
		if k.request || !named {
			k.mark = o.remember
		}
	}
	switch {
	case len(p.keys) > maxKeys:
		return fmt.Errorf("guard: %d keys in one operation, at most %d are allowed: %w", len(p.keys), maxKeys, lock.ErrInvalidKey)
	case p.namesRowsUnder(request):
		return errRowsOfRequest
	case len(p.keys) > 1 && o.remember > 0 && !named:
		return errors.New("guard: Remember with several keys: it is for one key that names a request")
	}
	slices.SortFunc(p.keys, func(a, b planned) int { return inOrder(a.key, b.key) })
	return nil
}

// errRowsOfRequest is returned by a call that names rows under the key of its request.
var errRowsOfRequest = errors.New("guard: rows under the key of a request, which protects none: name them by Also, under a key of their own")

// namesRowsUnder reports whether the call has rows under the key of a request, if there is one.
func (p *plan) namesRowsUnder(request string) bool {
	k := p.find(request)
	return request != "" && k != nil && len(k.rows) > 0
}

// find returns what is planned for key, or nil.
func (p *plan) find(key string) *planned {
	if i := slices.IndexFunc(p.keys, func(k planned) bool { return k.key == key }); i >= 0 {
		return &p.keys[i]
	}
	return nil
}

// protecting returns key, if it protects the rows that are named under it. That of the request
// does not, as other requests may write the same rows: then it returns "".
func (p *plan) protecting(key string) string {
	if k := p.find(key); k != nil && k.request {
		return ""
	}
	return key
}

// request returns the key of the request, "" if it is none of the keys.
func (p *plan) request() string {
	if i := slices.IndexFunc(p.keys, func(k planned) bool { return k.request }); i >= 0 {
		return p.keys[i].key
	}
	return ""
}

// protect names the rows that the keys protect.
func (p *plan) protect(tx *dbtx.Tx) error {
	for i := range p.keys {
		if err := p.keys[i].protect(tx); err != nil {
			return err
		}
	}
	return nil
}

func (k *planned) protect(tx *dbtx.Tx) error {
	if len(k.rows) == 0 {
		return nil
	}
	defer tx.Under(k.key)()
	for _, row := range k.rows {
		if err := tx.Protect(row); err != nil {
			return err
		}
	}
	return nil
}

// several returns the keys if there are several.
func (p *plan) several() []string {
	if len(p.keys) == 1 {
		return nil
	}
	keys := make([]string, len(p.keys))
	for i := range p.keys {
		keys[i] = p.keys[i].key
	}
	return keys
}

// keysOfRequests begins the key of every request: see once.Request.Key.
const keysOfRequests = "once:"

// inOrder compares two keys by the order in which every operation acquires them. Keys of
// requests come first, since a repeat must not wait for the others. Nothing but the bytes of a
// key counts, not what the key is to this operation: otherwise two operations with the same
// keys could wait for each other.
func inOrder(a, b string) int {
	switch first := strings.HasPrefix(a, keysOfRequests); {
	case first == strings.HasPrefix(b, keysOfRequests):
		return cmp.Compare(a, b)
	case first:
		return -1
	}
	return 1
}
