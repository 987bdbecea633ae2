-- Frees a lock and wakes those who wait for it. It offers the lock to the engine
-- that stands first in line, which has 20 ms to take it.
-- KEYS[1] lock name   KEYS[2] the lock's line, if it can be used
-- ARGV[1] owner   ARGV[2] channel, or empty to wake nobody
-- ARGV[3] publish or spublish
-- ARGV[4] 1 if the caller's engine listens, too
-- ARGV[5] engine that leaves the line, or empty
-- Returns 1 when freed, 0 when this owner does not have the lock.
local line = KEYS[2] ~= nil
if line and ARGV[5] ~= '' then
  redis.pcall('zrem', KEYS[2], ARGV[5])
end
if redis.call('hdel', KEYS[1], ARGV[1]) == 0 then
  return 0
end
if ARGV[2] == '' then
  return 1
end
-- A channel is no key. Proxies that check the text of scripts want KEYS in its place
-- all the same, and the name of each command written out.
KEYS[3] = ARGV[2]
local told, shards = nil, ARGV[3] == 'spublish'
if shards then
  told = redis.pcall('spublish', KEYS[3], '0')
end
-- A server before 7 has no spublish. A message that can't be sent must not
-- turn a release into an error.
if type(told) ~= 'number' then
  told, shards = redis.pcall('publish', KEYS[3], '0'), false -- counts only this server's clients
end
if not line or type(told) ~= 'number' or told == 0 and shards then
  return 1 -- nobody comes for an offer
end

-- Nothing below must do so either: who may not write the line does without it.
local first = redis.pcall('zpopmin', KEYS[2])
if first[1] == '*' and tonumber(first[2]) < 0 then -- the turn of others is over
  first = redis.pcall('zpopmin', KEYS[2])
end
local time = redis.call('time')
local now = time[1] * 1000000 + time[2]
if told > 0 then
  -- Who listens and stands in no line is another kind of client: it comes to
  -- the end of the line, as *, but to a turn in 50 ms at the earliest.
  local others = redis.pcall('zcount', KEYS[2], '-inf', now)
  local known = ARGV[4] + ((first[1] or '*') ~= '*' and 1 or 0)
  if type(others) == 'number' and told > known + others then
    redis.pcall('zadd', KEYS[2], 'lt', now + 50000, '*')
    redis.pcall('pexpire', KEYS[2], 3000)
  end
end
if first[1] == '*' then
  -- Its turn is free for those who ask without a line, for 5 ms.
  local at = tonumber(first[2])
  redis.pcall('zadd', KEYS[2], at <= now and -(now + 5000) or math.min(at, now + 50000), '*')
  redis.pcall('pexpire', KEYS[2], 3000)
elseif first[1] then
  local rest = redis.pcall('exists', KEYS[1])
  if rest == 0 then
    redis.pcall('hset', KEYS[1], first[1] .. ':0', 1)
    redis.pcall('pexpire', KEYS[1], 20)
  elseif type(rest) == 'table' then
    redis.pcall('pexpire', KEYS[2], 0) -- the slot migrates: the next lock, and its line, are at the new node
  end
end
return 1
