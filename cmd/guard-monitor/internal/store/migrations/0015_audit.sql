-- What people did to an incident, on its page.
CREATE INDEX audit_by_subject ON audit (subject, id);
