-- What else the labels of an alert say: whoever knows an alert by its labels is sent its end under the same.
ALTER TABLE notifications ADD COLUMN cluster TEXT NOT NULL DEFAULT '';
ALTER TABLE notifications ADD COLUMN shard   TEXT NOT NULL DEFAULT '';
-- An older version did not note them: most likely they are those that the incident has.
UPDATE notifications SET cluster = i.cluster, shard = i.shard FROM incidents i WHERE i.id = notifications.incident_id;
