// Package selfcheck reports that guard-monitor itself cannot work: that it receives no
// events, cannot store them, or cannot query a Redis. Without that, a monitor that sees
// nothing looks like one that has nothing to report. On request it also sends a watchdog
// message as long as all is well, so that somebody else notices when it ends.
//
// A part is checked each second. It has failed after Config.After of errors, and works
// again after settle without one. A short success in between ends nothing: a connection that
// comes back for a moment, again and again, is a failure.
//
// The messages do not pass the store, since it is one of the parts. What was sent is stored
// as soon as that is possible, only so that a restart sends neither the failure again nor
// forgets that it is over.
package selfcheck
