-- What else the labels of an alert say: whoever knows an alert by its labels is sent its end under the same.
ALTER TABLE notifications ADD COLUMN cluster TEXT NOT NULL DEFAULT '';
ALTER TABLE notifications ADD COLUMN shard   TEXT NOT NULL DEFAULT '';
