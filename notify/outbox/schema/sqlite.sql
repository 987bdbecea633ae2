-- Events on their way to the broker. Rows are never changed: inserted once,
-- deleted after the broker has confirmed the event.
CREATE TABLE IF NOT EXISTS belay_outbox (
  id         INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  event_id   TEXT    NOT NULL UNIQUE,
  created_at TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  body       TEXT    NOT NULL
)
