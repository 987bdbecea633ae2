-- How many operations had failed, or had no lock, when people were notified.
ALTER TABLE notifications ADD COLUMN failures INTEGER NOT NULL DEFAULT -1;  -- -1 = an older version did not note it
ALTER TABLE notifications ADD COLUMN without INTEGER NOT NULL DEFAULT -1;   -- likewise
