// Package once names requests, and keeps those that have taken effect: an operation that
// serves a request takes effect at most once, however often the request is repeated.
//
//	if err := once.Migrate(ctx, db); err != nil {
//		return err
//	}
//	r := once.Request{Operation: "charge", Scope: []string{tenant}, ID: header}
//	answer, err := guard.Once(ctx, g, r, charge, guard.Also("account:7", &Account{ID: 7}))
//
// [github.com/belaygo/belay/guard.For] stores the request in the transaction of an
// operation. [github.com/belaygo/belay/guard.Once] stores an answer, too, which every
// repeat gets. The tables are in the database of the operation, so that a request is kept if
// and only if its effects are.
//
// # The claim
//
// A request is inserted into belay_once before the operation runs: this is its claim. While
// the transaction has not ended, another transaction's claim of the request waits, or is
// refused; so two operations for one request never run at once, not even when the lock has
// failed. A committed claim is never updated, and only a [Purger] deletes it. There is no
// state "in progress" that a crash could leave behind.
//
// Each attempt to claim has a random number. When the COMMIT is not answered, the claim
// proves its outcome: the row with this number exists, or it does not.
//
// # Waiting
//
// The wait for a claim is bounded on the server, not by a context, because MySQL and MariaDB
// would wait on for a client that has disconnected, and then execute its INSERT. MariaDB
// takes the bound with the statement. On MySQL and PostgreSQL it is a setting of the
// session, set before the INSERT and restored before the operation runs, within the
// transaction: a pooler that gives a session to one transaction at a time does not mix it
// up.
//
// # What is kept
//
// The tables have the SHA-256 of a request's name and, if the request has a [Print], that of
// its content; and they have the answer. They have nothing else from the caller but the time that a UUID of
// version 7 or a ULID begins with: it takes the place of the first six bytes, so that new claims are side by side.
// A claim takes some 150 bytes.
//
// A request is kept until a [Purger] deletes it, by the database's clock. Keep it for longer
// than any client repeats it: a later repeat takes effect again. Purgers of one database need one
// Keep, also those of different services, since each deletes all that is older than its own.
// Serving a request reads no clock.
package once
