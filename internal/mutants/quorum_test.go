package mutants

var quorumMutants = []mutant{
	{
		name:  "half-is-a-majority",
		loses: "Two processes hold a lock, each on its half of the nodes.",
		file:  "lock/quorumlock/engine.go",
		old:   `majority: len(nodes)/2 + 1,`,
		new:   `majority: len(nodes) / 2,`,
		tests: "lock/quorumlock TestOthersGiveWay TestRenewHeals",
	},
	{
		name:  "restarted-nodes-vote",
		loses: "Redis servers that are started again without their locks grant them to others.",
		file:  "lock/quorumlock/starter.go",
		old:   `case sent.Sub(started) <= ttl:`,
		new:   `case false:`,
		tests: "lock/quorumlock TestHistoryOfRestarts TestYoungNodesDoNotVote",
	},
	{
		name:  "release-overtakes-acquire",
		loses: "A slow node keeps a lock that was released, until its ttl has passed.",
		file:  "lock/quorumlock/course.go",
		old:   `		if before != nil {`,
		new:   `		if false {`,
		tests: "lock/quorumlock TestReleaseDoesNotOvertakeAcquire",
	},
	{
		name:  "renewal-revives-released-locks",
		loses: "A node keeps a lock that was released during its renewal, until its ttl has passed.",
		file:  "lock/quorumlock/renew.go",
		old:   `	released := w.e.courses[h].released`,
		new:   `	released := false`,
		tests: "lock/quorumlock TestRenewDoesNotReviveReleased",
	},
	{
		name:  "silent-majority-holds-nothing",
		loses: "A lock that silent nodes may have granted is not released, and stays until its ttl has passed.",
		file:  "lock/quorumlock/errors.go",
		old: `	case left >= b.e.majority:
		return b.failure(ctx, lockengine.ErrNoAnswer)
	case`,
		new:   `	case`,
		tests: "lock/quorumlock TestSilentMajorityMayHold",
	},
	{
		name:  "split-votes-stay-split",
		loses: "A free lock that many processes acquire at once is granted to none of them.",
		file:  "lock/quorumlock/ballot.go",
		old: `		case granted:
			return true
		case held:`,
		new:   `		case held:`,
		tests: "lock/quorumlock TestFirstNodeSettlesSplitVotes",
	},
	{
		name:  "start-told-too-early",
		loses: "A Redis server that was started again votes a second too early.",
		file:  "lock/redislock/started.go",
		old:   `max(0, uptime-1)`,
		new:   `max(0, uptime+1)`,
		tests: "lock/redislock TestStarted",
	},
	{
		name:  "start-by-the-clock-alone",
		loses: "A server that was started again with a clock that is behind votes as soon as the clock is set.",
		file:  "lock/redislock/started.go",
		old:   `runID != s.runID {`,
		new:   `runID == s.runID && uptime < 0 {`,
		tests: "lock/redislock TestStartedBeforeItsClockWasSet",
	},
	{
		name:   "quorum-watches-one-node",
		loses:  "A lock that other nodes have lost is believed in until its next renewal.",
		file:   "lock/quorumlock/loss.go",
		old:    `range e.nodes {`,
		new:    `range e.nodes[:1] {`,
		tests:  "lock/quorumlock TestLossIsWatchedWhereItCanBe",
		panics: true,
	},
	{
		name:  "quorum-undoes-loudly",
		loses: "While a majority is away, waiters wake each other by what they take in vain.",
		file:  "lock/quorumlock/ballot.go",
		old:   `, Quiet: true}`,
		new:   `}`,
		tests: "lock/quorumlock TestAcquireInVainWakesNobody",
	},
	{
		name:  "late-grant-of-a-later-attempt-is-released",
		loses: "A holder who has asked twice loses the lock at servers that were slow at the first time.",
		file:  "lock/quorumlock/ballot.go",
		old:   "v.mayHold() && c.ballots[v.node] == b",
		new:   "v.mayHold()",
		tests: "lock/quorumlock TestLateGrantOfAnOwnerWhoAskedAgain",
	},
}
