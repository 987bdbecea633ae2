// Package outbox keeps events in a table of the business database until a
// broker has confirmed them, so that none is lost while the broker is away or
// the process restarts.
//
//	if err := outbox.Migrate(ctx, db); err != nil {
//		return err
//	}
//	box, err := outbox.New(db, outbox.Config{Service: "orders", Relay: publisher})
//	if err != nil {
//		return err
//	}
//	defer box.Close(ctx) // after the guard, before the publisher
//	g, err := guard.New(db, locker, guard.Config{Service: "orders", Publisher: box})
//
// [Outbox.Publish] returns once the event is in the table belay_outbox, in a separate
// transaction: call it after the business transaction has ended, never within. A relay
// goroutine publishes the rows through Config.Relay and deletes them. A stored event
// never changes, and its id never does.
//
// # Writing
//
// Events that come within a few milliseconds share an INSERT, and only one
// INSERT of a process runs at a time: a burst costs the database few statements
// and one connection. Each event gets its own row.
//
// If the table cannot be written, the event goes to Config.Relay at once, under the
// same id and within the same limit. If that fails as well, the event is logged whole,
// at level error, and Publish returns an error.
//
// # Relaying
//
// Any number of processes may relay one table. A relay leases a batch of rows
// (with SKIP LOCKED where the database has it), so that the others skip them, and
// releases those that it has no time for. The rows of a process that died are free when
// their lease has ended. Rows that fail wait longer with every attempt; they never hold
// up those behind them. All times are those of the database's clock. MySQL needs
// row-based or mixed binary logs, its default, since rows are leased at READ COMMITTED.
//
// A [notify.RawPublisher], such as that of notify/rabbitmq, gets the bytes in the
// table. So versions may share a table: an older relay forwards the fields that a newer
// version has added to an event.
//
// A row that cannot be read as an event is counted, logged the first time, and
// left in the table for an hour, after which a relay tries it again; UPDATE
// belay_outbox SET retry_at = 0 makes relays retry it at once. A newer version may be
// able to read it.
//
// If the destination refuses an event but may accept others ([notify.ErrRefused]), the event waits
// for half a minute to 10 minutes, and the others are relayed meanwhile. That happens if the token
// is not for its service, or if it is too large for the broker. The first such event of a service
// is logged, and then one every 10 minutes. Close does not wait for such events.
//
// After a failover that lost the last rows, MySQL and MariaDB give their ids to
// other events. So a relay deletes, releases or postpones a row only if the row still
// has the event that the relay has leased.
//
// A row whose time is more than an hour ahead of the database's clock is due at once:
// the clock has been set back.
//
// A publisher whose destination is overloaded may ask for a pause (Config.Relay). The
// relay then publishes nothing for that long, while heartbeats continue.
//
// With Config.Service, and a publisher of this module as Relay (or a struct that embeds
// one), the relay sends a heartbeat every minute, past the table, so that the monitor can
// distinguish silence from a broken path. With Config.Switch it sends one more when the locks
// begin to move to another engine, and when that is over. With Config.Messages they count the
// messages that wait.
//
// # Guarantees
//
// From the commit of its row on, an event is published at least once. It may be
// published more often, always under one id: when a process dies between publish
// and delete, when a lease ends before its relay is done, and when a write of
// unknown outcome was followed by a direct publish. So consumers must be
// idempotent by id. Events may overtake each other. A process that dies before
// the commit of the row reports nothing.
//
// The outbox works on MySQL, MariaDB, PostgreSQL and SQLite, on the connection
// pool below the given *gorm.DB: callbacks, plugins, hooks, naming and the other
// settings of the gorm.DB do not matter.
package outbox
