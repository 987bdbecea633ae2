-- What a receiver was told the cause of an incident was. It may change when
-- late evidence arrives.
ALTER TABLE notifications ADD COLUMN cause TEXT NOT NULL DEFAULT '';

CREATE INDEX notifications_by_receiver ON notifications (receiver, incident_id, id) WHERE error = '';
