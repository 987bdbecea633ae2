-- What became of the operations of an incident's events; failures are their sum.
ALTER TABLE incidents ADD COLUMN undone    INTEGER NOT NULL DEFAULT 0;  -- rolled back
ALTER TABLE incidents ADD COLUMN committed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE incidents ADD COLUMN without   INTEGER NOT NULL DEFAULT 0;  -- committed without a lock, as is allowed
ALTER TABLE incidents ADD COLUMN refused   INTEGER NOT NULL DEFAULT 0;  -- since no lock could be acquired

-- The event that the evidence is about.
ALTER TABLE incidents ADD COLUMN exemplar TEXT NOT NULL DEFAULT '';

-- Operations of unknown outcome are few among many.
CREATE INDEX events_doubtful ON events (incident_id, key) WHERE outcome = 'unknown' AND verdict <> 'degraded';

-- received_at - at of the heartbeat before: two that agree tell how an instance's
-- clock goes.
ALTER TABLE heartbeats ADD COLUMN lag_before INTEGER;

-- What incidents count is counted anew, where all of their events are still there:
-- so far unknowns were events, also those that an outage begins with.
UPDATE incidents SET undone = e.undone, committed = e.committed, unknowns = e.unknowns, without = e.without,
    failures = e.undone + e.committed + e.unknowns
FROM (
    SELECT incident_id, count(*) AS events,
        sum(count * (verdict <> 'degraded' AND outcome NOT IN ('committed', 'unknown'))) AS undone,
        sum(count * (verdict <> 'degraded' AND outcome = 'committed')) AS committed,
        sum(count * (verdict <> 'degraded' AND outcome = 'unknown')) AS unknowns,
        sum(count * (verdict = 'degraded' AND outcome = 'committed')) AS without
    FROM events WHERE incident_id IS NOT NULL GROUP BY incident_id
) e
WHERE e.incident_id = incidents.id AND e.events = incidents.events;
