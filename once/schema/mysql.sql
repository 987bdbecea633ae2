-- Requests that have taken effect: inserted first in their transaction, deleted when
-- they are old. Only a CALL of a procedure updates one, while it may commit.
CREATE TABLE IF NOT EXISTS belay_once (
  request    BINARY(32)    NOT NULL, -- SHA-256 of operation, scope and id, behind the time of an id that has one
  attempt    BIGINT        NOT NULL, -- random: whose claim it is
  print      VARBINARY(33) NULL,     -- of what was asked for; NULL = not compared
  held       BIGINT        NOT NULL, -- of the keys under which it was made
  operation  VARCHAR(64)   CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  created_at TIMESTAMP(6)  NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (request),
  KEY belay_once_age (created_at)
) ENGINE = InnoDB;
-- Their answers: inserted last, deleted before their requests, or with them if they are refusals.
CREATE TABLE IF NOT EXISTS belay_answer (
  request    BINARY(32)   NOT NULL,
  refused    SMALLINT     NOT NULL, -- 1: the answer was kept, the effects were not
  codec      VARCHAR(32)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `body`     MEDIUMBLOB   NOT NULL,
  created_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (request),
  KEY belay_answer_age (refused, created_at)
) ENGINE = InnoDB
