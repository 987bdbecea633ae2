-- The requests of guard.Call of an instance that are not settled, by the last heartbeat that counts them: see package incident.
ALTER TABLE heartbeats ADD COLUMN calls                  TEXT    NOT NULL DEFAULT '';  -- the table, with its database; '' = it never counted
ALTER TABLE heartbeats ADD COLUMN calls_pending          INTEGER NOT NULL DEFAULT 0;
ALTER TABLE heartbeats ADD COLUMN calls_oldest           INTEGER NOT NULL DEFAULT 0;   -- microseconds
ALTER TABLE heartbeats ADD COLUMN calls_undecided        INTEGER NOT NULL DEFAULT 0;
ALTER TABLE heartbeats ADD COLUMN calls_oldest_undecided INTEGER NOT NULL DEFAULT 0;   -- microseconds
ALTER TABLE heartbeats ADD COLUMN calls_at               INTEGER NOT NULL DEFAULT 0;   -- when that heartbeat came

CREATE INDEX heartbeats_by_calls ON heartbeats (service, calls, calls_at) WHERE calls <> '';
