-- The messages of an instance that wait, by the last heartbeat that counts them: see package incident.
ALTER TABLE heartbeats ADD COLUMN messages     TEXT    NOT NULL DEFAULT '';  -- the table, with its database; '' = it never counted
ALTER TABLE heartbeats ADD COLUMN waiting      INTEGER NOT NULL DEFAULT 0;
ALTER TABLE heartbeats ADD COLUMN oldest       INTEGER NOT NULL DEFAULT 0;   -- microseconds
ALTER TABLE heartbeats ADD COLUMN parked       INTEGER NOT NULL DEFAULT 0;
ALTER TABLE heartbeats ADD COLUMN dead         INTEGER NOT NULL DEFAULT 0;
ALTER TABLE heartbeats ADD COLUMN undecided    INTEGER NOT NULL DEFAULT 0;
ALTER TABLE heartbeats ADD COLUMN oldest_dead  INTEGER NOT NULL DEFAULT 0;   -- microseconds
ALTER TABLE heartbeats ADD COLUMN counted_at   INTEGER NOT NULL DEFAULT 0;   -- when that heartbeat came

CREATE INDEX heartbeats_by_messages ON heartbeats (service, messages, counted_at) WHERE messages <> '';
