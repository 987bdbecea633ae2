package failpoints_test

// A relayDeath is a death of a relay, or of the command that decides a dead letter.
type relayDeath struct {
	point string
	nth   int
	bad   string // what the second message meets at its first try
	read  bool   // messages may have been sent before
}

const (
	unaccepted = "unaccepted" // an error
	dead       = "dead"       // an error that makes it a dead letter
)

// relayDeaths are in the order in which a relay passes them. The messages of the trial have one key.
// Those of dbtx are of the inbox that the relay sends to.
var relayDeaths = []relayDeath{
	{point: "relay/renewed", nth: 1},
	{point: "relay/lane-taken", nth: 1},
	{point: "relay/read", nth: 1},
	{point: "relay/before-send", nth: 1},
	{point: "relay/before-send", nth: 2, read: true},
	{point: "guard/claimed", nth: 2, read: true},
	{point: "dbtx/before-commit", nth: 2, read: true},
	{point: "dbtx/committed", nth: 2, read: true},
	{point: "relay/sent", nth: 1, read: true},
	{point: "relay/sent", nth: 3, read: true},
	{point: "relay/deleted", nth: 1, read: true},
	{point: "relay/parked", nth: 1, read: true, bad: unaccepted},
	{point: "relay/parked", nth: 1, read: true, bad: dead},
	{point: "relay/settling", nth: 1, read: true, bad: dead},
}
