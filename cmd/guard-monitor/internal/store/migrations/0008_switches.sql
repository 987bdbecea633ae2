-- What an instance knows of the engine that keeps its locks, with its last heartbeat.
ALTER TABLE heartbeats ADD COLUMN epoch     INTEGER NOT NULL DEFAULT 0;  -- 0 = it says nothing
ALTER TABLE heartbeats ADD COLUMN origin    TEXT    NOT NULL DEFAULT '';
ALTER TABLE heartbeats ADD COLUMN target    TEXT    NOT NULL DEFAULT '';
ALTER TABLE heartbeats ADD COLUMN settled   INTEGER NOT NULL DEFAULT 0;
ALTER TABLE heartbeats ADD COLUMN made_by   TEXT    NOT NULL DEFAULT '';
ALTER TABLE heartbeats ADD COLUMN remaining INTEGER NOT NULL DEFAULT 0;  -- microseconds
ALTER TABLE heartbeats ADD COLUMN learned_at INTEGER NOT NULL DEFAULT 0; -- when it first said so, by this host's clock

CREATE INDEX heartbeats_by_switch ON heartbeats (learned_at, service) WHERE epoch > 0;

-- Switches of services to another engine, as their instances report them.
CREATE TABLE switches (
    id       INTEGER PRIMARY KEY,
    service  TEXT    NOT NULL,
    epoch    INTEGER NOT NULL,
    origin   TEXT    NOT NULL,
    target   TEXT    NOT NULL,
    made_by  TEXT    NOT NULL,
    seen_at  INTEGER NOT NULL,
    over_at  INTEGER NOT NULL,  -- 0 = not over
    UNIQUE (service, epoch, origin, target)
) STRICT;

CREATE INDEX switches_by_seen ON switches (seen_at);
