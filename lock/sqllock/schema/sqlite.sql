-- Locks: a row is acquired by an update, as long as it is there, so that its token grows.
-- It is deleted when nobody has had it for a while.
CREATE TABLE IF NOT EXISTS belay_lock (
  name     BLOB    NOT NULL PRIMARY KEY,
  owner    TEXT    NOT NULL, -- empty = nobody
  token    INTEGER NOT NULL,
  until_us INTEGER NOT NULL -- microseconds since 1970
);
CREATE INDEX IF NOT EXISTS belay_lock_until ON belay_lock (until_us);
-- Markers: the work that a key names is done.
CREATE TABLE IF NOT EXISTS belay_done (
  name     BLOB    NOT NULL PRIMARY KEY,
  until_us INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS belay_done_until ON belay_done (until_us);
-- The records that say which engine keeps the locks: see package switchlock.
CREATE TABLE IF NOT EXISTS belay_switch (
  name        BLOB    NOT NULL PRIMARY KEY,
  epoch       INTEGER NOT NULL,
  from_engine BLOB    NOT NULL,
  to_engine   BLOB    NOT NULL,
  settled     INTEGER NOT NULL,
  lease_us    INTEGER NOT NULL, -- microseconds, as the next two
  ttl_us      INTEGER NOT NULL,
  cross_us    INTEGER NOT NULL,
  base        INTEGER NOT NULL,
  changed_by  BLOB    NOT NULL
)
