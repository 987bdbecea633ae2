// Package dispatch decides who is told of which incident, and when.
//
// Nothing waits in memory: in every round the incidents of the store are
// compared with what the store's log says a receiver was told, and the
// difference is due. So an incident whose process was killed before anybody
// heard of it is told after the restart, and one that was told is not told
// again. A process that dies between a message and its log entry sends that
// message twice.
//
// Incidents with like labels make a group, which is told in one message: first
// after GroupWait, then whenever it changes but at most every GroupInterval,
// and as it goes on every RepeatInterval. When a receiver's rate is used up,
// all that is due becomes one digest as soon as one message may be sent.
//
// An incident that was over before anybody was told is told all the same, once:
// a lock failed. Silences mute all of this, an acknowledgement the repeats.
package dispatch
