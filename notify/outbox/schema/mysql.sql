-- Events on their way to the broker. Rows are never changed: inserted once,
-- deleted after the broker has confirmed the event.
CREATE TABLE IF NOT EXISTS belay_outbox (
  id         BIGINT       NOT NULL AUTO_INCREMENT,
  event_id   VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  created_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  body       MEDIUMTEXT   NOT NULL,
  PRIMARY KEY (id),
  UNIQUE KEY belay_outbox_event_id (event_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4
