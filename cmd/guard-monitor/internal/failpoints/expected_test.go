//go:build failpoints

package failpoints_test

import "slices"

var operations = []operation{insert, update, custom}

// inherited are the points that the relay of another process passes with the row of a dead
// one: it dies there, too.
var inherited = []string{"outbox/claimed", "rabbitmq/before-send", "rabbitmq/sent", "outbox/confirmed"}

// from reports whether point is the limit, or comes after it.
func (s *situation) from(limit, point string) bool {
	switch limit {
	case never:
		return false
	case always:
		return true
	}
	return slices.Index(s.points, point) >= slices.Index(s.points, limit)
}

// passed returns which passage of a point is meant: 0 if the operation does not pass it. Of the
// statements it is the last write.
func (s *situation) passed(point string, op operation) int {
	switch {
	case op == s.refuses:
		return 0
	case point == "dbtx/inserted" && op == update, point == "dbtx/updated" && op == insert:
		return 0
	case point == "dbtx/executed" && op == update:
		return 2
	case point == "dbtx/executed" && op == custom:
		return 4
	}
	return 1
}
