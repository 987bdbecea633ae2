-- What waits in the tables of an instance's messages, with its last heartbeat: see package incident.
ALTER TABLE heartbeats ADD COLUMN messages     TEXT    NOT NULL DEFAULT '';  -- the table, with its database; '' = it counts none
ALTER TABLE heartbeats ADD COLUMN waiting      INTEGER NOT NULL DEFAULT 0;
ALTER TABLE heartbeats ADD COLUMN oldest       INTEGER NOT NULL DEFAULT 0;   -- microseconds
ALTER TABLE heartbeats ADD COLUMN parked       INTEGER NOT NULL DEFAULT 0;
ALTER TABLE heartbeats ADD COLUMN dead         INTEGER NOT NULL DEFAULT 0;
ALTER TABLE heartbeats ADD COLUMN undecided    INTEGER NOT NULL DEFAULT 0;
ALTER TABLE heartbeats ADD COLUMN oldest_dead  INTEGER NOT NULL DEFAULT 0;   -- microseconds

CREATE INDEX heartbeats_by_messages ON heartbeats (service, messages, received_at) WHERE messages <> '';
