package call

// A mutant is a rule that is dropped, and the invariant that notices.
type mutant struct {
	name   string
	weak   Weakness
	breaks int
	other  bool
}

func (m mutant) config() Config {
	return Config{Repeats: 2, Faults: 2, Other: m.other, Weak: m.weak}
}

var mutants = []mutant{
	{"takeover without lease", TakeoverWithoutLease, 6, false},
	{"no second look at belay_once", NoSecondLook, 3, false},
	{"CAS without attempt", CompareNoAttempt, 7, false},
	{"Until ignored", UntilIgnored, 5, false},
	{"result not stored", ResultNotStored, 4, false},
	{"fall through after a lost CAS", FallThrough, 7, false},
	{"call before the resolve of COMMIT 1", CallBeforeResolve, 7, false},
	{"P purged", PendingPurged, 8, false},
}

// others are what else may be dropped, so that each invariant is seen to bite.
var others = []mutant{
	{"Until ignored", UntilIgnored, 1, false},
	{"P is a claim", PendingInOnce, 9, false},
	{"P is a claim", PendingInOnce, 11, false},
	{"the call ends with the lock", CallEndsWithLock, 10, false},
	{"no print", NoPrint, 2, true},
	{"print not kept", PrintNotKept, 2, true},
	{"a timeout is a refusal", TimeoutIsRefusal, 3, false},
	{"claims purged early", ClaimPurgedEarly, 8, false},
}
