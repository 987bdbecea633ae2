package failpoints_test

// A callTable is what a death in a situation with a payment leaves: the crash table of guard.Call.
type callTable struct {
	reserves string // the point from which on the request is pending, unless it is settled
	charges  string // the point from which on the provider has charged for the victim
	stores   string // the point from which on the provider's answer is stored with what is pending
	others   int    // calls by those who come before the victim's death

	refuses   bool // the provider
	undecided bool // Until is over before anybody can go on
	nth       map[string]int
}

// secondTx are the passages of points in transaction 2, if the same process has made transaction 1.
var secondTx = map[string]int{
	"dbtx/before-begin": 2, "dbtx/begun": 2, "dbtx/updated": 2, "dbtx/before-commit": 2, "dbtx/committed": 2,
	"guard/second-key": 2, "lock/before-release": 5, "lock/release-answered": 5,
}

// settling are the points of transaction 2 and after it.
var settling = []string{
	"guard/called", "dbtx/before-begin", "dbtx/begun", "guard/claimed", "guard/unpended", "dbtx/updated",
	"guard/answered", "dbtx/before-commit", "dbtx/committed", "lock/before-release", "lock/release-answered",
}

// calls are the situations with a payment. The request's key is locked all the time, the two others in
// the transactions. Until is an hour, but where it is to end.
var calls = []situation{
	{
		name: "call, reserving", effect: never, only: []operation{payment},
		points: []string{
			"lock/granted", "guard/second-key", "dbtx/begun", "guard/pending", "dbtx/updated", "dbtx/before-commit",
			"dbtx/committed", "guard/before-call", "provider/charged",
		},
		call: &callTable{reserves: "dbtx/committed", charges: "provider/charged"},
	},
	{
		name: "call, settling", effect: "dbtx/committed", only: []operation{payment}, points: settling,
		call: &callTable{reserves: always, charges: always, nth: secondTx},
	},
	{
		name: "call, refused", effect: "dbtx/committed", only: []operation{payment}, points: settling,
		call: &callTable{reserves: always, charges: always, nth: secondTx, refuses: true},
	},
	{
		name: "call, undecided", effect: never, only: []operation{payment},
		points: []string{"guard/before-call", "provider/charged", "guard/called"},
		call:   &callTable{reserves: always, charges: "provider/charged", undecided: true},
	},
	{
		name: "call, not answered", effect: never, only: []operation{payment}, points: []string{"guard/given-back"},
		call: &callTable{reserves: always, charges: always},
	},
	{
		name: "call, not settled", effect: never, only: []operation{payment},
		points: []string{"dbtx/before-rollback", "dbtx/rolled-back", "guard/result-stored"},
		call:   &callTable{reserves: always, charges: always, stores: "guard/result-stored"},
	},
	{
		name: "call, refused and not settled", effect: never, only: []operation{payment},
		points: []string{"dbtx/rolled-back", "guard/result-stored"},
		call:   &callTable{reserves: always, charges: always, stores: "guard/result-stored", refuses: true},
	},
	{
		name: "call, taken over", effect: "dbtx/committed", only: []operation{payment},
		points: []string{"guard/taken-over", "guard/before-call", "provider/charged", "guard/called", "dbtx/before-commit", "dbtx/committed"},
		call:   &callTable{reserves: always, charges: "provider/charged", others: 1},
	},
	{
		name: "call, lock lost", effect: never, only: []operation{payment}, points: []string{"guard/called"},
		call: &callTable{reserves: always, charges: always},
	},
	{
		name: "call, overtaken", effect: always, only: []operation{payment}, points: []string{"guard/called"},
		call: &callTable{reserves: never, charges: always, others: 1},
	},
	{
		name: "call, commit of reservation lost", effect: never, only: []operation{payment},
		points: []string{"guard/before-resolve", "guard/resolved"},
		call:   &callTable{reserves: never, charges: never},
	},
	{
		name: "call, answer to reservation lost", effect: never, only: []operation{payment},
		points: []string{"guard/before-resolve", "guard/resolved", "guard/before-call"},
		call:   &callTable{reserves: always, charges: never},
	},
	{
		name: "call, commit of settlement lost", effect: never, only: []operation{payment},
		points: []string{"guard/before-resolve", "guard/resolved"},
		call:   &callTable{reserves: always, charges: always},
	},
	{
		name: "call, answer to settlement lost", effect: always, only: []operation{payment},
		points: []string{"guard/before-resolve", "guard/resolved"},
		call:   &callTable{reserves: never, charges: always},
	},
}
