-- Messages on their way out: inserted last in their transaction, deleted after they were
-- accepted. Only created_at ever changes, by a person's decision.
CREATE TABLE IF NOT EXISTS belay_message (
  id          BIGINT         NOT NULL AUTO_INCREMENT,
  lane        SMALLINT       NOT NULL, -- of the key, 0 to 31
  message_id  VARCHAR(255)   CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  key_sum     BINARY(16)     NOT NULL, -- of the key; of the message id without a key
  message_key VARBINARY(512) NOT NULL, -- empty: the message has no order
  topic       VARCHAR(255)   CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  headers     TEXT           CHARACTER SET ascii COLLATE ascii_bin NOT NULL, -- JSON
  `body`      MEDIUMBLOB     NOT NULL,
  created_at  BIGINT         NOT NULL, -- ms since 1970, by the database's clock
  PRIMARY KEY (id),
  UNIQUE KEY belay_message_message_id (message_id),
  KEY belay_message_lane (lane, id)
) ENGINE = InnoDB;
-- Who sends the messages of a lane: one relay at a time.
CREATE TABLE IF NOT EXISTS belay_lane (
  lane     SMALLINT    NOT NULL,
  owner    VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  term     BIGINT      NOT NULL, -- grows with each write
  until_ms BIGINT      NOT NULL, -- since 1970, by the database's clock; the owner has the lane until then
  PRIMARY KEY (lane)
) ENGINE = InnoDB;
INSERT INTO belay_lane (lane, owner, term, until_ms) VALUES (0, '', 0, 0), (1, '', 0, 0), (2, '', 0, 0), (3, '', 0, 0), (4, '', 0, 0), (5, '', 0, 0), (6, '', 0, 0), (7, '', 0, 0), (8, '', 0, 0), (9, '', 0, 0), (10, '', 0, 0), (11, '', 0, 0), (12, '', 0, 0), (13, '', 0, 0), (14, '', 0, 0), (15, '', 0, 0), (16, '', 0, 0), (17, '', 0, 0), (18, '', 0, 0), (19, '', 0, 0), (20, '', 0, 0), (21, '', 0, 0), (22, '', 0, 0), (23, '', 0, 0), (24, '', 0, 0), (25, '', 0, 0), (26, '', 0, 0), (27, '', 0, 0), (28, '', 0, 0), (29, '', 0, 0), (30, '', 0, 0), (31, '', 0, 0) ON DUPLICATE KEY UPDATE lane = lane;
-- The relays that share the lanes.
CREATE TABLE IF NOT EXISTS belay_relay (
  owner    VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  beats    BIGINT      NOT NULL, -- grows with each write
  until_ms BIGINT      NOT NULL, -- since 1970; it lives until then
  PRIMARY KEY (owner)
) ENGINE = InnoDB;
-- Keys whose messages wait, since the first of them was not accepted. A row whose message is gone
-- counts until a relay deletes it, within a second or so.
CREATE TABLE IF NOT EXISTS belay_parked (
  key_sum    BINARY(16)   NOT NULL,
  lane       SMALLINT     NOT NULL,
  message_id VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, -- that was not accepted
  attempts   INT          NOT NULL, -- that failed
  retry_at   BIGINT       NOT NULL, -- ms since 1970, by the database's clock; of a dead letter, when it became one
  dead       SMALLINT     NOT NULL, -- 0: no; 1: the message is a dead letter; 2: it is undecided, too. Its key waits for a person's decision
  reason     VARCHAR(500) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  PRIMARY KEY (key_sum),
  KEY belay_parked_lane (lane),
  KEY belay_parked_dead (dead)
) ENGINE = InnoDB
