-- The program stores the further keys of an event, which it has decoded already. The trigger
-- parsed each body twice more.
DROP TRIGGER events_have_keys;
