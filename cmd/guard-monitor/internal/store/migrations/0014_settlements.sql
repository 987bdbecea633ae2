-- What people have found out about operations of unknown outcome.
CREATE TABLE settlements (
    id          INTEGER PRIMARY KEY,
    at          INTEGER NOT NULL,
    incident_id TEXT    NOT NULL REFERENCES incidents (id) ON DELETE CASCADE,
    key         TEXT    NOT NULL,  -- empty: all that were in doubt then
    outcome     TEXT    NOT NULL,
    operations  INTEGER NOT NULL,
    made_by     TEXT    NOT NULL,
    note        TEXT    NOT NULL
) STRICT;

CREATE INDEX settlements_by_incident ON settlements (incident_id, id);
