-- Takes a lock, or renews it when this owner has it already, so that asking
-- twice is the same as asking once.
-- KEYS[1] lock name   ARGV[1] owner   ARGV[2] ttl in ms
-- Returns {1, seconds, microseconds} of the server's clock when granted,
-- {0, owner, ms left} when another owner has it.
if redis.call('exists', KEYS[1]) == 1 and redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  local owners = redis.call('hkeys', KEYS[1])
  return {0, owners[1], redis.call('pttl', KEYS[1])}
end
redis.call('hset', KEYS[1], ARGV[1], 1)
redis.call('pexpire', KEYS[1], ARGV[2])
local now = redis.call('time')
return {1, tonumber(now[1]), tonumber(now[2])}
