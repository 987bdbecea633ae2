// Package dispatch decides which receiver is sent which incident, and when.
//
// Nothing waits in memory. Each round compares the incidents of the store with what
// the store's log says was sent to a receiver, and the difference is due. So after a
// crash nothing is lost, and nothing is sent again, with one exception: a process that
// ends between a message and its log entry sends that message twice. A round is skipped
// while no incident has changed and no group is due; the log is read once for an incident.
//
// Incidents with the same labels are one group and one message. It is sent first after
// GroupWait, then when the group changes, at most every GroupInterval, and every
// RepeatInterval while it lasts. When a receiver's rate is used up, all that is due
// becomes one digest as soon as one message may be sent.
//
// A route may take only some services or severities, or only what nobody has acknowledged
// for a while (EscalateAfter). What was sent to it once, it gets until that is over.
//
// An incident that was over before it was sent is sent once all the same: a lock
// failed. Silences mute all of this, an acknowledgement the repeats.
package dispatch
