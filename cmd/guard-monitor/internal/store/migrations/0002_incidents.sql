-- Incidents, the timeline and what people do about them. Times are Unix
-- microseconds, 0 where there is none; lists and numbers are JSON.
ALTER TABLE events ADD COLUMN incident_id TEXT;  -- NULL until it is grouped

CREATE INDEX events_ungrouped ON events (seq) WHERE incident_id IS NULL;
CREATE INDEX events_by_incident ON events (incident_id, key) WHERE incident_id IS NOT NULL;
CREATE INDEX events_by_key ON events (key, caught_at);
CREATE INDEX events_by_received_at ON events (received_at);
CREATE INDEX events_by_service ON events (service, seq);

CREATE TABLE incidents (
    id          TEXT PRIMARY KEY,     -- UUIDv7: in order of creation
    group_key   TEXT    NOT NULL,
    service     TEXT    NOT NULL,
    cause       TEXT    NOT NULL,
    cluster     TEXT    NOT NULL,
    shard       TEXT    NOT NULL,
    node        TEXT    NOT NULL,
    slot        INTEGER NOT NULL,
    state       TEXT    NOT NULL,
    confidence  TEXT    NOT NULL,
    first_at    INTEGER NOT NULL,
    last_at     INTEGER NOT NULL,
    seen_at     INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    opened_at   INTEGER NOT NULL,
    resolved_at INTEGER NOT NULL,
    events      INTEGER NOT NULL DEFAULT 0,
    failures    INTEGER NOT NULL DEFAULT 0,
    keys        INTEGER NOT NULL DEFAULT 0,
    unknowns    INTEGER NOT NULL DEFAULT 0,
    regressed   INTEGER NOT NULL,
    evidence    TEXT    NOT NULL,
    next_step   TEXT    NOT NULL,
    doc_link    TEXT    NOT NULL,
    acked_by    TEXT    NOT NULL DEFAULT '',
    acked_at    INTEGER NOT NULL DEFAULT 0,
    merged_into TEXT    NOT NULL,
    rate        TEXT    NOT NULL
) STRICT;

CREATE INDEX incidents_open ON incidents (group_key) WHERE state <> 'resolved';
CREATE INDEX incidents_by_group ON incidents (group_key, id);
CREATE INDEX incidents_by_update ON incidents (updated_at);

-- The different lock keys of an incident, up to a bound.
CREATE TABLE incident_keys (
    incident_id TEXT NOT NULL REFERENCES incidents (id) ON DELETE CASCADE,
    key         TEXT NOT NULL,
    PRIMARY KEY (incident_id, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE timeline (
    id       INTEGER PRIMARY KEY,
    at       INTEGER NOT NULL,
    since    INTEGER NOT NULL,
    kind     TEXT    NOT NULL,
    cluster  TEXT    NOT NULL,
    shard    TEXT    NOT NULL,
    node     TEXT    NOT NULL,
    peer     TEXT    NOT NULL,
    text     TEXT    NOT NULL,
    numbers  TEXT    NOT NULL
) STRICT;

CREATE INDEX timeline_by_at ON timeline (at);
CREATE INDEX timeline_by_kind ON timeline (kind, at);

CREATE TABLE heartbeats (
    service     TEXT    NOT NULL,
    instance    TEXT    NOT NULL,
    at          INTEGER NOT NULL,
    every       INTEGER NOT NULL,     -- microseconds
    received_at INTEGER NOT NULL,
    PRIMARY KEY (service, instance)
) STRICT, WITHOUT ROWID;

CREATE TABLE silences (
    id         INTEGER PRIMARY KEY,
    matchers   TEXT    NOT NULL,
    starts_at  INTEGER NOT NULL,
    ends_at    INTEGER NOT NULL,
    author     TEXT    NOT NULL,
    comment    TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    ended_by   TEXT    NOT NULL DEFAULT ''
) STRICT;

CREATE INDEX silences_by_end ON silences (ends_at);

CREATE TABLE notifications (
    id          INTEGER PRIMARY KEY,
    at          INTEGER NOT NULL,
    receiver    TEXT    NOT NULL,
    incident_id TEXT    NOT NULL,
    reason      TEXT    NOT NULL,
    state       TEXT    NOT NULL,
    attempts    INTEGER NOT NULL,
    error       TEXT    NOT NULL      -- empty = delivered
) STRICT;

CREATE INDEX notifications_by_incident ON notifications (incident_id, receiver, id);

CREATE TABLE audit (
    id      INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL,
    who     TEXT    NOT NULL,
    remote  TEXT    NOT NULL,
    action  TEXT    NOT NULL,
    subject TEXT    NOT NULL,
    detail  TEXT    NOT NULL
) STRICT;
