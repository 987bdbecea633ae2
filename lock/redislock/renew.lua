-- Lets a lock live on.
-- KEYS[1] lock name   ARGV[1] owner   ARGV[2] ttl in ms
-- Returns 1 when renewed, 0 when this owner does not have the lock.
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  -- A former primary rejects this, and knows of no loss. No other rejection says so.
  local rejected = redis.pcall('hdel', KEYS[1], ARGV[1])
  if type(rejected) == 'table' and string.find(rejected.err, 'READONLY', 1, true) then
    return redis.error_reply('READONLY This server is a replica.')
  end
  return 0
end
redis.call('pexpire', KEYS[1], ARGV[2])
return 1
