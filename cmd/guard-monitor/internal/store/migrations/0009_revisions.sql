-- How often incidents and silences were changed. Each change of an incident gives it the
-- next number, by which readers find what has changed since they read last.
CREATE TABLE revisions (incidents INTEGER NOT NULL, silences INTEGER NOT NULL) STRICT;
INSERT INTO revisions VALUES (0, 0);

ALTER TABLE incidents ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
CREATE INDEX incidents_by_revision ON incidents (revision);

CREATE TRIGGER incident_inserted AFTER INSERT ON incidents BEGIN
    UPDATE revisions SET incidents = incidents + 1;
    UPDATE incidents SET revision = (SELECT incidents FROM revisions) WHERE id = new.id;
END;
CREATE TRIGGER incident_updated AFTER UPDATE ON incidents WHEN new.revision = old.revision BEGIN
    UPDATE revisions SET incidents = incidents + 1;
    UPDATE incidents SET revision = (SELECT incidents FROM revisions) WHERE id = new.id;
END;
CREATE TRIGGER silence_inserted AFTER INSERT ON silences BEGIN
    UPDATE revisions SET silences = silences + 1;
END;
CREATE TRIGGER silence_updated AFTER UPDATE ON silences BEGIN
    UPDATE revisions SET silences = silences + 1;
END;
