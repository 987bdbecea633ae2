-- How urgent an incident was when people were notified, and how many operations were refused by then.
ALTER TABLE notifications ADD COLUMN severity TEXT NOT NULL DEFAULT '';  -- empty = an older version did not note it
ALTER TABLE notifications ADD COLUMN refused INTEGER NOT NULL DEFAULT 0;
