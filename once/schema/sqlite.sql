-- Requests that have taken effect: inserted first in their transaction, deleted when
-- they are old. Only a CALL of a procedure updates one, while it may commit.
CREATE TABLE IF NOT EXISTS belay_once (
  request    BLOB    NOT NULL PRIMARY KEY, -- SHA-256 of operation, scope and id, behind the time of an id that has one
  attempt    INTEGER NOT NULL,             -- random: whose claim it is
  print      BLOB,                         -- of what was asked for; NULL = not compared
  held       INTEGER NOT NULL,             -- of the keys under which it was made
  operation  TEXT    NOT NULL,
  created_at TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);
CREATE INDEX IF NOT EXISTS belay_once_age ON belay_once (created_at);
-- Their answers: inserted last, deleted before their requests, or with them if they are refusals.
CREATE TABLE IF NOT EXISTS belay_answer (
  request    BLOB    NOT NULL PRIMARY KEY,
  refused    INTEGER NOT NULL, -- 1: the answer was kept, the effects were not
  codec      TEXT    NOT NULL,
  body       BLOB    NOT NULL,
  created_at TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);
CREATE INDEX IF NOT EXISTS belay_answer_age ON belay_answer (refused, created_at)
