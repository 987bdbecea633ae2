package guard

import (
	"time"

	"github.com/belaygo/belay/notify"
)

// held is what an attempt sees of the keys of its call.
type held interface {
	alive() error                              // why a lease is no longer believed in
	without() error                            // why there is no lock on a key, nil if there is one on each
	state(key string) keyState                 // of key, or else of the key that Do was given
	lapsed(key string) error                   // why the lease of that one is no longer believed in
	holder(key string) (notify.Holder, string) // who has the lock on that one now
	confirm() error                            // whether each lock is still held
	ttl() time.Duration                        // for how long the locks last without a renewal
	patience() time.Duration                   // how long an attempt may wait for another with its request
}

// keyState is what is known of a key that is held.
type keyState struct {
	key     string
	without error // why there is no lock on it
	nested  bool  // others may run under its lock, too
}
