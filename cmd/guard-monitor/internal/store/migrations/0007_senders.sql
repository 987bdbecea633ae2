-- Who is known to have sent an event: a user of the broker.
ALTER TABLE events ADD COLUMN sender TEXT NOT NULL DEFAULT '';
