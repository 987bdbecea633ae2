package mutants

var redisMutants = []mutant{
	{
		name:  "lock-granted-twice",
		loses: "Redis grants a key that another process holds.",
		file:  "lock/redislock/acquire.lua",
		old:   `local taken, offered = redis.call('exists', KEYS[1]) == 1, false`,
		new:   `local taken, offered = redis.call('hexists', KEYS[1], ARGV[1]) == 1, false`,
		tests: "lock/redislock TestHistory TestLockersExclude",
	},
	{
		name:  "anybody-renews",
		loses: "A holder that lost its lock renews that of the next one, and both go on.",
		file:  "lock/redislock/renew.lua",
		old:   `redis.call('hexists', KEYS[1], ARGV[1]) == 0`,
		new:   `redis.call('exists', KEYS[1]) == 0`,
		tests: "lock/redislock TestRenew",
	},
	{
		name:  "anybody-releases",
		loses: "A late release frees the lock of the next holder.",
		file:  "lock/redislock/release.lua",
		old:   `redis.call('hdel', KEYS[1], ARGV[1]) == 0`,
		new:   `redis.call('del', KEYS[1]) == 0`,
		tests: "lock/redislock TestContractOnSingleServer",
	},
	{
		name:  "lock-that-never-expires",
		loses: "The key of a process that died stays locked for ever.",
		file:  "lock/redislock/acquire.lua",
		old:   `redis.call('pexpire', KEYS[1], ARGV[2])`,
		new:   `redis.call('persist', KEYS[1])`,
		tests: "lock/redislock TestLockInRedis",
	},
	{
		name:  "lock-outlives-its-ttl",
		loses: "The key of a process that died stays locked for minutes.",
		file:  "lock/redislock/acquire.go",
		old:   `[]any{r.Owner, ttl.Milliseconds(), e.id, e.waits(name, r), `,
		new:   `[]any{r.Owner, 24 * ttl.Milliseconds(), e.id, e.waits(name, r), `,
		tests: "lock/redislock TestLockInRedis",
	},
	{
		name:  "not-sent-is-a-guess",
		loses: "A lock that was taken without an answer is not released, and stays until its ttl has passed.",
		file:  "lock/redislock/errors.go",
		old:   `	return fmt.Errorf("%w: %w", lock.ErrNoAnswer, err)`,
		new:   `	return fmt.Errorf("%w: %w", lock.ErrNotSent, err)`,
		tests: "lock/redislock TestContractOnSingleServer",
	},
	{
		name:  "no-turns",
		loses: "The process that releases a lock gets it again, and the others starve.",
		file:  "lock/redislock/release.lua",
		old:   `elseif first[1] then`,
		new:   `elseif false then`,
		tests: "lock/redislock TestTurns",
	},
	{
		name:  "offer-beside-a-holder",
		loses: "A process takes a lock that another one holds, as it was offered to it.",
		file:  "lock/redislock/acquire.lua",
		old:   `offered = redis.call('hexists', KEYS[1], ARGV[3] .. ':0') == 1 and`,
		new:   `offered = ARGV[4] == '1' and`,
		tests: "lock/redislock TestTurns TestOfferExpires",
	},
	{
		name:  "no-offer-while-a-slot-migrates",
		loses: "While a slot migrates, a release of a lock that others wait for fails.",
		file:  "lock/redislock/release.lua",
		old:   `local rest = redis.pcall('exists', KEYS[1])`,
		new:   `local rest = redis.call('exists', KEYS[1])`,
		tests: "lock/redislock TestFaultsOfData",
	},
	{
		name:  "offer-to-the-deaf",
		loses: "Processes that may not subscribe leave each lock idle for 20 ms.",
		file:  "lock/redislock/acquire.lua",
		old:   `if ARGV[4] == '1' then`,
		new:   `if waits then`,
		tests: "lock/redislock TestNoRightToChannels",
	},
	{
		name:  "no-turn-for-redisson",
		loses: "A Java thread waits for ever beside busy Go processes.",
		file:  "lock/redislock/release.lua",
		old:   `told > known + others`,
		new:   `told > known + others + 1`,
		tests: "lock/redislock TestOtherClientsTakeTurns",
	},
	{
		name:  "release-wakes-nobody",
		loses: "Waiting callers of other processes notice a release up to a second later.",
		file:  "lock/redislock/release.lua",
		old:   `redis.pcall(ARGV[3], ARGV[2], '0'),`,
		new:   `redis.pcall(ARGV[3], KEYS[1], '0'),`,
		tests: "lock/redislock TestReleasePublishes TestReleaseWakesRedisson",
	},
	{
		name:  "request-sent-twice",
		loses: "A request whose answer is lost is executed again, after its release perhaps.",
		file:  "lock/redislock/command.go",
		old:   `func (c *command) NoRetry() bool { return !c.script.question() }`,
		new:   `func (c *command) NoRetry() bool { return c.script.question() }`,
		tests: "lock/redislock TestSentOnce TestSentOnceBySingleClient TestCrowdIsSentOnce",
	},
	{
		name:  "no-answer-taken-for-not-sent",
		loses: "A lock that was granted without an answer is left to expire.",
		file:  "lock/redislock/errors.go",
		old:   `	return fmt.Errorf("%w: %w", lock.ErrNoAnswer, err)`,
		new:   `	return fmt.Errorf("%w: %w", lock.ErrNotSent, err)`,
		tests: "lock/redislock TestFaultsOfNodes TestAnswerLost",
	},
	{
		name:  "out-of-memory-is-no-refusal",
		loses: "Each lock that a full Redis rejects is released again for a ttl.",
		file:  "lock/redislock/errors.go",
		old:   `prefixesWriteless = []string{"OOM", "MISCONF", "NOREPLICAS"}`,
		new:   `prefixesWriteless = []string{"MISCONF", "NOREPLICAS"}`,
		tests: "lock/redislock TestAnsweredRefusals",
	},
	{
		name:  "marker-after-the-release",
		loses: "Work that is done and remembered is done again by the next holder.",
		file:  "lock/redislock/command.go",
		old: `	if c.markerSet != nil {
		_ = pipe.Process(ctx, c.markerSet)
	}
	_ = pipe.Process(ctx, c)
`,
		new: `	_ = pipe.Process(ctx, c)
	if c.markerSet != nil {
		_ = pipe.Process(ctx, c.markerSet)
	}
`,
		tests: "lock/redislock TestMarkerOnTheWire TestMarkerIsKept",
	},
}
