-- What lists are filtered by, in the order that they have: of events the time when they were
-- caught, of incidents that of their creation.
DROP INDEX events_by_service;
DROP INDEX events_by_verdict;
CREATE INDEX events_by_service ON events (service, caught_at);
CREATE INDEX events_by_verdict ON events (verdict, caught_at);
CREATE INDEX events_by_table ON events (table_name, caught_at) WHERE table_name <> '';
CREATE INDEX events_of_incident ON events (incident_id, caught_at) WHERE incident_id IS NOT NULL;

DROP INDEX incidents_open;
CREATE INDEX incidents_open ON incidents (id) WHERE state <> 'resolved';
CREATE INDEX incidents_by_service ON incidents (service, id);
CREATE INDEX incidents_by_cause ON incidents (cause, id);
