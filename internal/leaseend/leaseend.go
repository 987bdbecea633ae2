// Package leaseend has the two ways in which a lease ends at its deadline. Events distinguish
// them; for callers of package lock both are lock.ErrLost.
package leaseend

import "errors"

var (
	// ErrExpired: the lock was not renewed in time, so that it could no longer be relied on.
	ErrExpired = errors.New("not renewed in time")
	// ErrUnrenewed: every renewal since the last success failed, as the engine did not answer, or
	// rejected it. The error of such a lease matches ErrExpired, too.
	ErrUnrenewed = errors.New("renewals failed")
)
