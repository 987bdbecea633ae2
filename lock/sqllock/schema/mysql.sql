-- Locks: a row is acquired by an update, as long as it is there, so that its token grows.
-- It is deleted when nobody has had it for a while.
CREATE TABLE IF NOT EXISTS belay_lock (
  name     VARBINARY(512) NOT NULL,
  owner    VARBINARY(128) NOT NULL, -- empty = nobody
  token    BIGINT         NOT NULL,
  until_us BIGINT         NOT NULL, -- microseconds since 1970, by the database's clock
  PRIMARY KEY (name),
  KEY belay_lock_until (until_us)
) ENGINE = InnoDB;
-- Markers: the work that a key names is done.
CREATE TABLE IF NOT EXISTS belay_done (
  name     VARBINARY(512) NOT NULL,
  until_us BIGINT         NOT NULL,
  PRIMARY KEY (name),
  KEY belay_done_until (until_us)
) ENGINE = InnoDB;
-- The records that say which engine keeps the locks: see package switchlock.
CREATE TABLE IF NOT EXISTS belay_switch (
  name        VARBINARY(64) NOT NULL,
  epoch       BIGINT        NOT NULL,
  from_engine VARBINARY(64) NOT NULL,
  to_engine   VARBINARY(64) NOT NULL,
  settled     BIGINT        NOT NULL,
  lease_us    BIGINT        NOT NULL, -- microseconds, as the next two
  ttl_us      BIGINT        NOT NULL,
  cross_us    BIGINT        NOT NULL,
  base        BIGINT        NOT NULL,
  changed_by  VARBINARY(255) NOT NULL,
  PRIMARY KEY (name)
) ENGINE = InnoDB
