-- A service's degraded events are few among many.
CREATE INDEX events_degraded ON events (service, caught_at) WHERE verdict = 'degraded';
