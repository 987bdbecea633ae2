-- The further keys of events whose operations held several: of the locks that such an operation
-- loses it reports one. A body that was cut names none.
CREATE TABLE event_keys (
    key       TEXT    NOT NULL,
    caught_at INTEGER NOT NULL,
    seq       INTEGER NOT NULL REFERENCES events (seq) ON DELETE CASCADE,
    PRIMARY KEY (key, caught_at, seq)
) STRICT, WITHOUT ROWID;

CREATE INDEX event_keys_by_event ON event_keys (seq);

CREATE TRIGGER events_have_keys AFTER INSERT ON events WHEN json_valid(CAST(NEW.body AS TEXT))
BEGIN
    INSERT OR IGNORE INTO event_keys (key, caught_at, seq)
    SELECT k.value, NEW.caught_at, NEW.seq FROM json_each(CAST(NEW.body AS TEXT), '$.data.keys') k
    WHERE k.type = 'text' AND k.value <> NEW.key AND octet_length(k.value) <= 512 LIMIT 64;
END;

INSERT OR IGNORE INTO event_keys (key, caught_at, seq)
SELECT k.value, e.caught_at, e.seq
FROM (SELECT seq, key, caught_at, CAST(body AS TEXT) AS body FROM events) e
JOIN json_each(CASE WHEN json_valid(e.body) THEN e.body ELSE '{}' END, '$.data.keys') k
WHERE k.type = 'text' AND k.value <> e.key AND octet_length(k.value) <= 512;
