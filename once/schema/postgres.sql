-- Requests that have taken effect: inserted first in their transaction, deleted when
-- they are old. Only a CALL of a procedure updates one, while it may commit.
CREATE TABLE IF NOT EXISTS belay_once (
  request    BYTEA       NOT NULL PRIMARY KEY, -- SHA-256 of operation, scope and id, behind the time of an id that has one
  attempt    BIGINT      NOT NULL,             -- random: whose claim it is
  print      BYTEA,                            -- of what was asked for; NULL = not compared
  held       BIGINT      NOT NULL,             -- of the keys under which it was made
  operation  VARCHAR(64) COLLATE "C" NOT NULL,
  created_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX IF NOT EXISTS belay_once_age ON belay_once (created_at);
-- Their answers: inserted last, deleted before their requests, or with them if they are refusals.
CREATE TABLE IF NOT EXISTS belay_answer (
  request    BYTEA       NOT NULL PRIMARY KEY,
  refused    SMALLINT    NOT NULL, -- 1: the answer was kept, the effects were not
  codec      VARCHAR(32) COLLATE "C" NOT NULL,
  body       BYTEA       NOT NULL,
  created_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX IF NOT EXISTS belay_answer_age ON belay_answer (refused, created_at)
