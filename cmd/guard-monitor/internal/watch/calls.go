package watch

import (
	"maps"
	"slices"
)

// calls returns how often each command that removes keys succeeded, nil if the
// server does not report it. INFO itself is among those that it counts.
func (l *look) calls() map[string]int64 {
	if l.info["cmdstat_info"] == "" {
		return nil
	}
	calls := make(map[string]int64)
	for _, list := range [][]string{flushing, deleting} {
		for _, name := range list {
			line := l.info["cmdstat_"+name]
			calls[name] = stat(line, "calls") - stat(line, "failed_calls")
		}
	}
	return calls
}

// removals returns how often commands that remove keys were called on a master
// since the last look. A replica repeats what its master does.
func (l *look) removals(was *Node) map[string]int64 {
	if l.info["role"] != "master" || was.Role != master || l.info["run_id"] != was.RunID || was.calls == nil {
		return nil
	}
	calls := l.calls()
	maps.DeleteFunc(calls, func(name string, n int64) bool { return n <= was.calls[name] }) // fewer: CONFIG RESETSTAT
	for name := range calls {
		calls[name] -= was.calls[name]
	}
	return calls
}

// tells reports whether there will be an entry on commands that removed keys. Where
// they are routine, there is one every RoutineEvery.
func (l *look) tells(was *Node) bool {
	for name := range l.removals(was) {
		told := &was.deletions
		if slices.Contains(flushing, name) {
			told = &was.flushes
		}
		if l.at.Sub(told.told) >= told.pause() {
			return true
		}
	}
	return false
}
