package protected

import (
	"hash/maphash"
	"sync"
)

// Keys remembers under which key each row was protected last, to find rows that
// are protected under several.
type Keys struct {
	mu     sync.Mutex
	seed   maphash.Seed
	known  map[uint64]string // by the hash of the row's identity
	warned map[string]bool   // by table
}

// maxRowKeys is how many rows are remembered before all are forgotten.
const maxRowKeys = 1 << 14

// Another returns the other key that protected a row before. It reports false if there is
// none, or if one was returned for the row's table before.
func (k *Keys) Another(r *Row, now string) (key string, ok bool) {
	if now == "" {
		return "", false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil || len(k.known) >= maxRowKeys {
		k.seed, k.known = maphash.MakeSeed(), make(map[uint64]string)
	}
	row := maphash.String(k.seed, r.Identity())
	key, known := k.known[row]
	k.known[row] = now
	if !known || key == now || k.warned[r.Table] {
		return "", false
	}
	if k.warned == nil {
		k.warned = make(map[string]bool)
	}
	k.warned[r.Table] = true
	return key, true
}
