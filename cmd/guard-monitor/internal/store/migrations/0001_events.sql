-- Events as they were received. Times are Unix microseconds.
CREATE TABLE events (
    seq         INTEGER PRIMARY KEY,  -- order of arrival
    event_id    TEXT    NOT NULL UNIQUE,
    received_at INTEGER NOT NULL,     -- by this host's clock
    caught_at   INTEGER NOT NULL,     -- by the reporting host's clock
    service     TEXT    NOT NULL,
    instance    TEXT    NOT NULL,
    verdict     TEXT    NOT NULL,
    outcome     TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    table_name  TEXT    NOT NULL,     -- empty where no row was refused
    node        TEXT    NOT NULL,
    slot        INTEGER NOT NULL,     -- -1 where there are no slots
    count       INTEGER NOT NULL,     -- failures that the event stands for
    body        BLOB    NOT NULL,     -- JSON; cut if body_size is larger
    body_size   INTEGER NOT NULL      -- bytes, as received
) STRICT;

CREATE INDEX events_by_caught_at ON events (caught_at);
CREATE INDEX events_by_verdict ON events (verdict, count);
