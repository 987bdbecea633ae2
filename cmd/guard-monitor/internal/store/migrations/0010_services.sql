-- Which sender made a service known: a sender may introduce a bounded number. NULL: it was
-- known before they were counted.
CREATE TABLE services (
    service TEXT PRIMARY KEY,
    sender  TEXT,
    since   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX services_by_sender ON services (sender);

INSERT INTO services (service, since) SELECT DISTINCT service, 0 FROM heartbeats;
INSERT OR IGNORE INTO services (service, since)
    WITH RECURSIVE names(service) AS (
        SELECT min(service) FROM events
        UNION ALL
        SELECT (SELECT min(service) FROM events WHERE service > names.service) FROM names WHERE names.service IS NOT NULL)
    SELECT service, 0 FROM names WHERE service IS NOT NULL;
