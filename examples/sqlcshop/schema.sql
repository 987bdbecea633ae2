CREATE TABLE sales (
  no TEXT PRIMARY KEY,           -- the second layer of an insert
  item BIGINT NOT NULL
);

CREATE TABLE items (
  id BIGINT PRIMARY KEY,
  remains BIGINT NOT NULL,
  version BIGINT NOT NULL DEFAULT 1 -- the second layer of an update
);
