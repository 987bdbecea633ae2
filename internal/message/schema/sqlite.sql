-- Messages on their way out: inserted last in their transaction, deleted after they were
-- accepted. Only created_at ever changes, by a person's decision.
CREATE TABLE IF NOT EXISTS belay_message (
  id          INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  lane        INTEGER NOT NULL, -- of the key, 0 to 31
  message_id  TEXT    NOT NULL UNIQUE,
  key_sum     BLOB    NOT NULL, -- of the key; of the message id without a key
  message_key BLOB    NOT NULL, -- empty: the message has no order
  topic       TEXT    NOT NULL,
  headers     TEXT    NOT NULL, -- JSON
  body        BLOB    NOT NULL,
  created_at  INTEGER NOT NULL  -- ms since 1970
);
CREATE INDEX IF NOT EXISTS belay_message_lane ON belay_message (lane, id);
-- Who sends the messages of a lane: one relay at a time.
CREATE TABLE IF NOT EXISTS belay_lane (
  lane     INTEGER NOT NULL PRIMARY KEY,
  owner    TEXT    NOT NULL,
  term     INTEGER NOT NULL, -- grows with each write
  until_ms INTEGER NOT NULL  -- since 1970; the owner has the lane until then
);
INSERT INTO belay_lane (lane, owner, term, until_ms) VALUES (0, '', 0, 0), (1, '', 0, 0), (2, '', 0, 0), (3, '', 0, 0), (4, '', 0, 0), (5, '', 0, 0), (6, '', 0, 0), (7, '', 0, 0), (8, '', 0, 0), (9, '', 0, 0), (10, '', 0, 0), (11, '', 0, 0), (12, '', 0, 0), (13, '', 0, 0), (14, '', 0, 0), (15, '', 0, 0), (16, '', 0, 0), (17, '', 0, 0), (18, '', 0, 0), (19, '', 0, 0), (20, '', 0, 0), (21, '', 0, 0), (22, '', 0, 0), (23, '', 0, 0), (24, '', 0, 0), (25, '', 0, 0), (26, '', 0, 0), (27, '', 0, 0), (28, '', 0, 0), (29, '', 0, 0), (30, '', 0, 0), (31, '', 0, 0) ON CONFLICT (lane) DO NOTHING;
-- The relays that share the lanes.
CREATE TABLE IF NOT EXISTS belay_relay (
  owner    TEXT    NOT NULL PRIMARY KEY,
  beats    INTEGER NOT NULL, -- grows with each write
  until_ms INTEGER NOT NULL -- since 1970; it lives until then
);
-- Keys whose messages wait, since the first of them was not accepted. A row whose message is gone
-- counts until a relay deletes it, within a second or so.
CREATE TABLE IF NOT EXISTS belay_parked (
  key_sum    BLOB    NOT NULL PRIMARY KEY,
  lane       INTEGER NOT NULL,
  message_id TEXT    NOT NULL, -- that was not accepted
  attempts   INTEGER NOT NULL, -- that failed
  retry_at   INTEGER NOT NULL, -- ms since 1970; of a dead letter, when it became one
  dead       INTEGER NOT NULL, -- 0: no; 1: the message is a dead letter; 2: it is undecided, too. Its key waits for a person's decision
  reason     TEXT    NOT NULL
);
CREATE INDEX IF NOT EXISTS belay_parked_lane ON belay_parked (lane);
CREATE INDEX IF NOT EXISTS belay_parked_dead ON belay_parked (dead) WHERE dead > 0
