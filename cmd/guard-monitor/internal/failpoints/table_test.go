package failpoints_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/belaygo/belay/internal/testrepo"
	"github.com/belaygo/belay/notify"
)

// An operation is what an instance does once per request. Repeated, it is a repeat.
type operation string

const (
	insert operation = "insert" // of a row with a unique number
	update operation = "update" // of a row whose version the request names
	custom operation = "custom" // an insert, a versioned update and an INSERT in raw SQL

	transfer operation = "transfer" // two versioned updates, under a key each
	crew     operation = "crew"     // several callers' inserts and updates of one row, in one transaction
	requests operation = "requests" // the same, but of callers who serve a request each, and insert nothing
	request  operation = "request"  // an update, in a Once
	refusal  operation = "refusal"  // a request whose operation returns Refuse after its update
	payment  operation = "payment"  // a guard.Call: an update in Reserve, and one in Settle
	sending  operation = "sending"  // an update, and a guard.Send
)

// A situation is a story in which the victim passes some points, in their order.
type situation struct {
	name   string
	points []string
	effect string // the point from which on the operation has taken effect; see never and always
	event  string // the point from which on the victim's event is stored
	says   notify.Verdict
	blind  blindSpot // why an event may be missing if the victim dies before that

	refuses operation   // which does not come about here
	also    []operation // which do, beside operations
	only    []operation // which do, instead
	call    *callTable  // of a payment
}

const (
	never  = ""
	always = "*"
)

// A blindSpot is a sentence, or the begin of one, in docs/guarantees.md.
type blindSpot string

const (
	nothing           blindSpot = "" // no lock has failed, or another process reports it
	killedBeforeEvent blindSpot = "A process that is killed between the refusal of its write, or its rollback, and the commit of the event"
	lateHolderDied    blindSpot = "A commit by a holder that had lost its lock and died before it could report, unless it came after the next holder's snapshot."
	severalRows       blindSpot = "Where one key protects several rows: a write to one of them by a holder that had lost the lock, and died before it could report or whose release was not answered. The caller's change is made again, or the caller gets `ErrBusy`, or the verdict on another of the rows if it met that one."
)

// The way of an event from the guard to the broker.
var reporting = []string{
	"guard/before-event", "outbox/before-insert", "outbox/inserted", "guard/event-published",
	"outbox/claimed", "rabbitmq/before-send", "rabbitmq/sent", "outbox/confirmed", "outbox/deleted",
}

var situations = []situation{
	{
		name: "alone", effect: "dbtx/committed",
		points: []string{
			"lock/before-acquire", "lock/acquire-answered", "lock/granted", "guard/second-key",
			"guard/refusing", "dbtx/before-begin", "dbtx/begun", "guard/claimed",
			"dbtx/inserted", "dbtx/updated", "dbtx/executed", "guard/answered",
			"dbtx/before-commit", "dbtx/committed", "lock/before-release", "lock/release-answered",
		},
		also: []operation{transfer, request, refusal},
	},
	{
		name: "message", effect: "dbtx/committed", only: []operation{sending},
		points: []string{"dbtx/updated", "guard/message-stored", "dbtx/before-commit", "dbtx/committed", "lock/release-answered"},
	},
	{
		name: "crew", effect: "dbtx/committed",
		points: []string{
			"dbtx/begun", "guard/crew-loaded", "guard/crew-claimed", "dbtx/inserted", "dbtx/updated", "dbtx/before-commit",
			"dbtx/committed", "lock/before-release", "lock/release-answered", "guard/crew-ended",
		},
		only: []operation{crew, requests},
	},
	{
		name: "renewed", effect: never,
		points: []string{"lock/before-renewal", "lock/renewal-answered"},
	},
	{
		name: "handed over", effect: always,
		points: []string{"lock/handed-over", "lock/hand-over-taken"},
	},
	{
		name: "repeat", effect: always,
		points: []string{"dbtx/before-rollback", "dbtx/rolled-back", "guard/judged", "lock/before-release", "lock/release-answered"},
		also:   []operation{transfer, request},
	},
	{
		name: "remembered", effect: "dbtx/committed",
		points: []string{"dbtx/before-commit", "dbtx/committed", "lock/before-release", "lock/release-answered"},
	},
	{
		name: "overlap", effect: always, event: "outbox/inserted", says: notify.VerdictOverlap, blind: killedBeforeEvent,
		points: append([]string{
			"dbtx/before-rollback", "dbtx/rolled-back", "guard/judged", "lock/before-release", "lock/release-answered",
		}, reporting...),
		also: []operation{transfer},
	},
	{
		name: "overlap without a broker", effect: always, event: always, says: notify.VerdictOverlap,
		points: []string{"outbox/postponed"},
	},
	{
		name: "loss found by the watchdog", effect: always, event: "outbox/inserted", says: notify.VerdictLost, blind: killedBeforeEvent,
		points: []string{"dbtx/before-rollback", "dbtx/rolled-back", "guard/before-event", "outbox/inserted", "outbox/confirmed"},
		also:   []operation{transfer},
	},
	{
		name: "late commit", effect: always, event: "outbox/inserted", says: notify.VerdictLost, blind: lateHolderDied,
		points: []string{"dbtx/committed", "lock/release-answered", "guard/before-event", "outbox/inserted", "outbox/confirmed"},
		also:   []operation{transfer, request, crew, requests},
	},
	{
		name: "commit lost", effect: never,
		points: []string{"guard/before-resolve", "guard/resolved"},
		also:   []operation{transfer, request, crew, requests},
	},
	{
		name: "answer lost", effect: always,
		points: []string{"guard/before-resolve", "guard/resolved"},
		also:   []operation{transfer, request, crew, requests},
	},
	{
		name: "unknown commit", effect: always, event: "outbox/inserted", says: notify.VerdictUnknownCommit, blind: nothing,
		points: []string{"guard/resolved", "guard/abandoned", "guard/before-event", "outbox/inserted", "outbox/confirmed"},
		also:   []operation{transfer, request},
	},
	{
		name: "late commit under a rival", effect: "dbtx/committed", event: "outbox/inserted", says: notify.VerdictLost, blind: nothing,
		points: []string{
			"dbtx/before-commit", "dbtx/committed", "lock/before-release", "lock/release-answered",
			"guard/before-event", "outbox/inserted",
		},
	},
	{
		name: "without the lock", effect: "dbtx/committed", event: "outbox/inserted", says: notify.VerdictDegraded, blind: nothing,
		points: []string{
			"outbox/before-insert", "outbox/inserted", "dbtx/begun", "dbtx/inserted", "dbtx/updated",
			"dbtx/before-commit", "dbtx/committed",
		},
		refuses: custom, // raw SQL, which only the lock would guard
	},
}

// monitorPoints are passed by a monitor for each of its events; those of incidents for
// several at once.
var monitorPoints = []string{
	"intake/received", "intake/stored", "intake/acknowledged", "incident/before-save", "incident/saved",
	"dispatch/before-send", "dispatch/sent", "dispatch/logged",
}

// inTests begins the name of a point that the test program passes.
const inTests = "provider/"

// allPoints returns the points of the table, some of them several times.
func allPoints() []string {
	all := slices.Clone(monitorPoints)
	for _, d := range relayDeaths {
		all = append(all, d.point)
	}
	for _, s := range slices.Concat(situations, calls) {
		all = append(all, s.points...)
	}
	return all
}

// TestEveryPointIsInTheTable keeps a point from being added without a death at it.
func TestEveryPointIsInTheTable(t *testing.T) {
	found, err := names(testrepo.Root(t))
	if err != nil {
		t.Fatal(err)
	}
	table := allPoints()
	for name, at := range found {
		if !slices.Contains(table, name) {
			t.Errorf("%s: no situation has the point %q", at, name)
		}
	}
	for _, name := range table {
		if found[name] == "" && !strings.HasPrefix(name, inTests) {
			t.Errorf("the table has the point %q, which is not in the code", name)
		}
	}
}

func TestBlindSpotsAreNamed(t *testing.T) {
	for _, spot := range []blindSpot{killedBeforeEvent, lateHolderDied, severalRows} {
		if !testrepo.Says(t, "docs/guarantees.md", string(spot)) {
			t.Errorf("docs/guarantees.md does not name the blind spot %q", spot)
		}
	}
}
