-- Requests whose call to another service has no answer yet, or has one that is not settled:
-- inserted with the reservation, deleted with the claim. Nothing purges them.
CREATE TABLE IF NOT EXISTS belay_pending (
  request   BINARY(32)    NOT NULL,           -- as in belay_once
  attempt   BIGINT        NOT NULL,           -- random: whose call it is
  print     VARBINARY(33) NOT NULL,           -- of what was asked for
  operation VARCHAR(64)   CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  since_ms  BIGINT        NOT NULL DEFAULT 0, -- of the reservation; all times by the database's clock
  lease_ms  BIGINT        NOT NULL DEFAULT 0, -- nobody else calls before
  until_ms  BIGINT        NOT NULL DEFAULT 0, -- nobody calls later
  tries     INTEGER       NOT NULL DEFAULT 0,
  answered  SMALLINT      NOT NULL DEFAULT 0, -- 1: accepted, 2: refused
  `body`    MEDIUMBLOB    NULL,               -- the service's answer, as JSON
  PRIMARY KEY (request),
  KEY belay_pending_since (since_ms)
) ENGINE = InnoDB
