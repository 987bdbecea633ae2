-- Lets a lock live on.
-- KEYS[1] lock name   ARGV[1] owner   ARGV[2] ttl in ms
-- Returns 1 when renewed, 0 when this owner does not have the lock.
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  redis.call('hdel', KEYS[1], ARGV[1]) -- a former primary rejects this, and knows of no loss
  return 0
end
redis.call('pexpire', KEYS[1], ARGV[2])
return 1
