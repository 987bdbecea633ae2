package web

import (
	"time"

	"golang.org/x/crypto/bcrypt"
)

// Attempts bounds failed logins.
type Attempts = attempts

func NewAttempts() *Attempts { return newAttempts() }

func (a *attempts) Wait(address, name string, now time.Time) time.Duration {
	return a.wait(address, name, now)
}

func (a *attempts) Fail(address, name string, now time.Time) { a.fail(address, name, now) }

// Remembered is how much of what is remembered.
func (a *attempts) Remembered() int { return max(len(a.names.due), len(a.addresses.due)) }

const (
	NameBurst  = nameBurst
	MaxLimited = maxLimited
	MaxQueue   = comparing + waiting
)

// Watch calls f before each comparison, with the cost of the hash.
func (a *Auth) Watch(f func(cost int)) {
	a.match = func(hash, password []byte) error {
		cost, _ := bcrypt.Cost(hash)
		f(cost)
		return bcrypt.CompareHashAndPassword(hash, password)
	}
}

var (
	Dummy          = dummy
	WriteFilesUpTo = writeFiles
)
