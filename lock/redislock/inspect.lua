-- Tells who holds a lock.
-- KEYS[1] lock name
-- Returns {owner, ms left}, {false, -2} when nobody does.
local owners = redis.call('hkeys', KEYS[1])
return {owners[1] or false, redis.call('pttl', KEYS[1])}
