-- Locks: a row is acquired by an update, as long as it is there, so that its token grows.
-- It is deleted when nobody has had it for a while.
CREATE TABLE IF NOT EXISTS belay_lock (
  name     BYTEA        PRIMARY KEY,
  owner    VARCHAR(128) COLLATE "C" NOT NULL, -- empty = nobody
  token    BIGINT       NOT NULL,
  until_us BIGINT       NOT NULL -- microseconds since 1970, by the database's clock
);
CREATE INDEX IF NOT EXISTS belay_lock_until ON belay_lock (until_us);
-- Markers: the work that a key names is done.
CREATE TABLE IF NOT EXISTS belay_done (
  name     BYTEA  PRIMARY KEY,
  until_us BIGINT NOT NULL
);
CREATE INDEX IF NOT EXISTS belay_done_until ON belay_done (until_us);
-- The records that say which engine keeps the locks: see package switchlock.
CREATE TABLE IF NOT EXISTS belay_switch (
  name        BYTEA  PRIMARY KEY,
  epoch       BIGINT NOT NULL,
  from_engine BYTEA  NOT NULL,
  to_engine   BYTEA  NOT NULL,
  settled     BIGINT NOT NULL,
  lease_us    BIGINT NOT NULL, -- microseconds, as the next two
  ttl_us      BIGINT NOT NULL,
  cross_us    BIGINT NOT NULL,
  base        BIGINT NOT NULL,
  changed_by  BYTEA  NOT NULL
)
