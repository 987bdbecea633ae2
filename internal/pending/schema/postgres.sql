-- Requests whose call to another service has no answer yet, or has one that is not settled:
-- inserted with the reservation, deleted with the claim. Nothing purges them.
CREATE TABLE IF NOT EXISTS belay_pending (
  request   BYTEA    NOT NULL PRIMARY KEY, -- as in belay_once
  attempt   BIGINT   NOT NULL,             -- random: whose call it is
  print     BYTEA    NOT NULL,             -- of what was asked for
  operation VARCHAR(64) COLLATE "C" NOT NULL,
  since_ms  BIGINT   NOT NULL DEFAULT 0,   -- of the reservation; all times by the database's clock
  lease_ms  BIGINT   NOT NULL DEFAULT 0,   -- nobody else calls before
  until_ms  BIGINT   NOT NULL DEFAULT 0,   -- nobody calls later
  tries     INTEGER  NOT NULL DEFAULT 0,
  answered  SMALLINT NOT NULL DEFAULT 0,   -- 1: accepted, 2: refused
  body      BYTEA                          -- the service's answer, as JSON
);
CREATE INDEX IF NOT EXISTS belay_pending_since ON belay_pending (since_ms)
