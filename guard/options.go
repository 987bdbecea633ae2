package guard

import (
	"context"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/once"
)

// Op is a business operation. It runs in one transaction, tx, and must use tx
// and ctx, not those of its surroundings: ctx ends when the lock is lost. When
// it returns an error, everything is rolled back.
type Op func(ctx context.Context, tx *gorm.DB) error

// An Option adjusts one call of Do or Apply.
type Option func(*options)

type options struct {
	wait     time.Duration
	remember time.Duration
	retries  int
	protects []any
	also     []also
	requests []once.Request
	codec    *Codec // nil: by the type of the answer
	maxBody  int
	combine  bool
}

type also struct {
	key  string
	rows []any
}

// codecFor returns the codec for what model points to.
func (o options) codecFor(model any) Codec {
	if o.codec != nil {
		return *o.codec
	}
	if _, ok := model.(*[]byte); ok {
		return bytesCodec
	}
	return jsonCodec
}

// Wait lets Do wait up to d for the lock, through a failover, too. The default,
// 0, is to fail fast with ErrBusy. If d ends before the engine has answered, the engine has
// up to half a second more to do so: a short wait is no outage.
func Wait(d time.Duration) Option {
	return func(o *options) { o.wait = d }
}

// Protects names rows that the key protects: structs, or pointers to structs,
// whose non-zero fields are the columns of a unique index or of the primary
// key. A conflict on such a row is judged; one on any other row is a business
// conflict, and comes back as a *dbguard.ConflictError.
//
// Name a row only if all who write it use this key. If the key protects several rows,
// a change of one of them by another caller is a lock failure only if the lock is found
// gone: otherwise that caller may have written the row under a key of its own. Then
// Apply makes its change again, and Do returns ErrBusy: see Retries.
func Protects(rows ...any) Option {
	return func(o *options) { o.protects = append(o.protects, rows...) }
}

// Also adds a key to the operation, and rows that this key protects: the second account
// of a transfer, for instance. The locks on all keys are acquired before the transaction
// begins, all or none, and Wait bounds the wait for all of them. Every process acquires
// keys of requests (once.Request.Key) first, and then the others, in the order of their bytes,
// so no two operations wait for each other. An operation can have 16 keys: more
// match lock.ErrInvalidKey.
//
// A conflict on a row is judged by the lock on its key. A row that no Also names is
// protected by the key of Do. A row that is named under several keys is protected by the
// first of them in that order. When one lock is lost, the operation ends. Under DBOnly, an
// operation that writes without the lock on a key must write a row that this key protects.
//
// An operation holds its first keys while it waits for the others. So a busy key delays
// operations on other keys, too.
func Also(key string, rows ...any) Option {
	return func(o *options) { o.also = append(o.also, also{key, rows}) }
}

// Remember has the first layer remember for d that what the key names is done,
// once it is committed: until then Do with the same key and Remember returns
// ErrDuplicate without going to the database. It is only for keys that name a
// request; on a key like "sku:7" it would refuse everyone. What is remembered
// may be forgotten: that costs a visit to the database, nothing else. With For, the request is
// what is done, and a repeat is looked up in the database, without a transaction.
func Remember(d time.Duration) Option {
	return func(o *options) { o.remember = d }
}

// Combine lets callers of this process that wait for the key share a transaction. One of
// them loads the row, all change it in turn, and it is saved once. Each caller gets the
// row as its own change left it, and its answer after the COMMIT.
//
// Combine is an option of Apply with Wait. It applies to an Update of a row that comes
// without a version, to Inserts, to Send, and to an All of one such Update, of Inserts into
// other tables and of messages. Callers share a transaction if their Changes have the same steps, and the
// same primary key at the Update.
//
// Any other Change runs alone, and so does one with Also, Protects, Remember or Retries.
// The same holds for
//   - the Update of a model with hooks, with columns that the database computes or that gorm
//     does not read, or with fields that share memory (pointers, slices, maps);
//   - the Insert of a model with hooks or associations, or into a table whose triggers the
//     database shows.
//
// A caller runs alone, after the others, if its row, or the request that it serves (For), is
// there already or another of them inserts it, if its change deletes the row softly or still
// runs 10 ms after the first change began, or if the database refuses the values of one of
// them.
//
// Changes are made in memory before the first row is written. So a change does not see what
// the database makes of the rows that its own Insert inserts, such as their numbers. If the
// change fails, Apply returns its error, even if the database would have refused a unique
// value of the row to insert first; a repeat is still ErrDuplicate.
//
// What the database makes of a row when it is saved (rounding, triggers, checks) happens
// once for all: one UPDATE, by which the version grows by the number of changes, and a CHECK sees
// the sum. The statements get the context values of one of the callers. Callers need
// different keys if a plugin of gorm chooses rows by such values.
//
// A change delays all that wait for the key. It is a few lines on the row: no request, no mutex, no
// other operation.
//
// A failure of the database is returned to all callers of the transaction. A caller whose
// change failed gets it, too, as the change may have seen what was not committed: if the
// COMMIT has no answer, that is ErrUnknown. It is ErrUnknown, too, if the caller that runs the
// transaction panics when that may be committed.
//
// If the context of a caller ends and the transaction lasts longer than a tenth of a second,
// it is rolled back, and the changes of the others are made in another one. So Apply may return
// that much later, and by the time that the end of a transaction takes (Config.EndTimeout). If
// it is the context of the caller that runs the transaction, the lock is released: the others
// wait for it again, and get ErrBusy if their Wait has passed and somebody else is faster.
func Combine() Option { return func(o *options) { o.combine = true } }

// Retries allows the operation to run again, up to n times, when the database has
// rolled it back for a deadlock or the like, or when another caller has changed a row
// first and nothing shows that a lock failed: one of several rows that the key protects,
// or, without the lock (see DBOnly), any row. The operation must leave nothing behind in
// memory then: one that decrements a captured variable would do so twice. The default
// is 0 for Do and 3 for Apply, which a smaller n does not lower.
func Retries(n int) Option {
	return func(o *options) { o.retries = max(o.retries, n) }
}

// Encode sets the Codec of Once. Defaults to JSON, and to the bytes themselves for an
// answer that is a []byte.
func Encode(c Codec) Option {
	return func(o *options) { o.codec = &c }
}

// MaxAnswer sets how many bytes an encoded answer can have, at most 16 MiB - 1. Defaults to
// 64 KiB.
func MaxAnswer(bytes int) Option {
	return func(o *options) { o.maxBody = bytes }
}
