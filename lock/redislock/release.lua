-- Frees a lock and wakes those who wait for it.
-- KEYS[1] lock name   ARGV[1] owner   ARGV[2] channel   ARGV[3] publish or spublish
-- Returns 1 when freed, 0 when this owner does not have the lock.
if redis.call('hdel', KEYS[1], ARGV[1]) == 0 then
  return 0
end
-- A server before 7 has no spublish. A message that can't be sent must not
-- turn a release into an error.
local sent = redis.pcall(ARGV[3], ARGV[2], '0')
if type(sent) == 'table' and sent.err and ARGV[3] == 'spublish' then
  redis.pcall('publish', ARGV[2], '0')
end
return 1
