CREATE TABLE IF NOT EXISTS orders (
  id         BIGINT      NOT NULL AUTO_INCREMENT,
  no         VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  item       BIGINT      NOT NULL,
  amount     INT         NOT NULL,
  created_at DATETIME(3) NOT NULL,
  PRIMARY KEY (id),
  UNIQUE KEY orders_no (no)
) ENGINE = InnoDB;
CREATE TABLE IF NOT EXISTS stocks (
  id        BIGINT      NOT NULL,
  name      VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  remaining INT         NOT NULL,
  version   BIGINT      NOT NULL DEFAULT 1,
  PRIMARY KEY (id)
) ENGINE = InnoDB;
CREATE TABLE IF NOT EXISTS seed_progress (
  name     VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  loaded   BIGINT      NOT NULL DEFAULT 0,
  verified BOOLEAN     NOT NULL DEFAULT FALSE,
  PRIMARY KEY (name)
) ENGINE = InnoDB;
