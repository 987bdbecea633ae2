-- Takes a lock, or renews it when this owner has it already, so that asking
-- twice is the same as asking once. A lock that is offered to the caller's engine,
-- see release.lua, is there to be taken.
-- KEYS[1] lock name   KEYS[2] the lock's line, if the caller waits
-- ARGV[1] owner   ARGV[2] ttl in ms   ARGV[3] engine
-- ARGV[4] 1 if the caller is notified of releases, and may stand in line
-- Returns {1, seconds, microseconds} of the server's clock when granted,
-- {0, owner, ms left} when another owner has it.
local time = redis.call('time')
local waits = KEYS[2] ~= nil
local now = time[1] * 1000000 + time[2]
local taken, offered = redis.call('exists', KEYS[1]) == 1, false
if taken then
  offered = redis.call('hexists', KEYS[1], ARGV[3] .. ':0') == 1 and redis.call('hlen', KEYS[1]) == 1
end
if taken and not offered and redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  -- Who may not write the line does without it. A time in the future comes from a
  -- master before this one, whose clock was ahead.
  if waits and ARGV[4] == '1' then
    redis.pcall('zadd', KEYS[2], 'lt', now, ARGV[3])
    redis.pcall('pexpire', KEYS[2], 3000)
  end
  local owners = redis.call('hkeys', KEYS[1])
  return {0, owners[1], redis.call('pttl', KEYS[1])}
end
if waits and not taken then
  local turn = redis.pcall('zscore', KEYS[2], '*')
  local left = type(turn) == 'string' and -turn - now or 0
  if left > 0 and left <= 5000 then -- others have the turn
    return {0, '', math.ceil(left / 1000)}
  end
end
if waits then
  redis.pcall('zrem', KEYS[2], ARGV[3])
end
redis.call('hset', KEYS[1], ARGV[1], 1)
if offered then -- not before: while its slot migrates, a key that is gone can't be written again
  redis.call('hdel', KEYS[1], ARGV[3] .. ':0')
end
redis.call('pexpire', KEYS[1], ARGV[2])
return {1, tonumber(time[1]), tonumber(time[2])}
