// Package pgsync has the statements that wait for the synchronous standby of a PostgreSQL.
//
// A primary shows a commit to others only after its standby has it, with two exceptions: a
// COMMIT that is cancelled, or whose session is ended, while it waits for the standby, and
// one that a restarted primary finds in its own log. A promotion loses such a row, though
// others have seen it.
package pgsync

// Message logs a message. Its COMMIT is acknowledged after the standby has that, and all
// earlier ones.
const Message = "SELECT pg_logical_emit_message(true, 'belay', '')"

// Barrier is Message if commits wait for a standby at all, and nothing otherwise. The COMMIT
// of its transaction waits until what was read before is as safe as an acknowledged commit.
const Barrier = Message + " WHERE current_setting('synchronous_standby_names') <> '' AND NOT pg_is_in_recovery()"
