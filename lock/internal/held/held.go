// Package held has the error that lock exports and the errors of lock/lockengine match.
package held

import "errors"

// Err is lock.ErrHeld.
var Err = errors.New("lock: held by another caller")
