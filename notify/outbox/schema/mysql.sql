-- Events on their way to the broker: inserted once, deleted after the broker
-- has confirmed them. Only the last three columns ever change.
CREATE TABLE IF NOT EXISTS belay_outbox (
  id           BIGINT       NOT NULL AUTO_INCREMENT,
  event_id     VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  created_at   TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  `body`       MEDIUMTEXT   NOT NULL,
  attempts     INT          NOT NULL DEFAULT 0, -- that failed
  retry_at     BIGINT       NOT NULL DEFAULT 0, -- ms since 1970, by the database's clock
  leased_until BIGINT       NOT NULL DEFAULT 0, -- the same; a relay has the row until then
  PRIMARY KEY (id),
  UNIQUE KEY belay_outbox_event_id (event_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4
