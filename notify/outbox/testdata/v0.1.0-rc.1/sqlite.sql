-- Events on their way to the broker: inserted once, deleted after the broker
-- has confirmed them. Only the last three columns ever change.
CREATE TABLE IF NOT EXISTS belay_outbox (
  id           INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  event_id     TEXT    NOT NULL UNIQUE,
  created_at   TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  body         TEXT    NOT NULL,
  attempts     INTEGER NOT NULL DEFAULT 0, -- that failed
  retry_at     INTEGER NOT NULL DEFAULT 0, -- ms since 1970
  leased_until INTEGER NOT NULL DEFAULT 0  -- the same; a relay has the row until then
)
