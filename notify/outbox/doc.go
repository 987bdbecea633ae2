// Package outbox keeps events in a table of the business database until a
// broker has confirmed them, so that none is lost while the broker is away or
// the process restarts.
//
// [Outbox.Publish] returns once the event is in the table belay_outbox, in a
// transaction of its own: call it after the business transaction has ended,
// never within. A relay goroutine reads the oldest rows, publishes each through
// Config.Relay and deletes it by its id. Rows are never changed.
//
// If the table cannot be written, the event goes to the relay's publisher at
// once, under the same id and within the same limit. If that fails as well, the
// event is logged whole, at level error, and Publish says so.
//
// What is promised: from the commit of its row on, an event is published at
// least once. It may be published more often, always under one id: when a
// process dies between publish and delete, when several processes relay one
// table (each of them may pick up a row before another deletes it), and when a
// write of unknown outcome was followed by a direct publish. So consumers must
// be idempotent by id. Events may overtake each other. A process that dies
// before the commit of the row reports nothing.
//
// A row that cannot be read as an event is left in the table, logged and
// counted once by each process, and does not hold up the rows behind it; nor
// does a row that the publisher keeps refusing.
//
// The outbox works on MySQL, MariaDB and SQLite, on the connection pool below
// the given *gorm.DB: callbacks, plugins, hooks, naming and the other settings
// of the gorm.DB do not matter.
package outbox
