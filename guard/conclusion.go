package guard

import "github.com/belaygo/belay/notify"

// A conclusion is what the end of a run says to the Call that it is a part of. Its error does not say
// that, which may be the operation's own.
type conclusion struct {
	outcome notify.Outcome // of the last transaction
	failed  bool           // a lock or a COMMIT has failed: what the operation has returned does not count
	events  []string       // the keys that events were published about
}

func (c conclusion) unknown() bool { return c.outcome == notify.OutcomeUnknown }
