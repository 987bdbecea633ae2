//go:build failpoints

package failpoints_test

import "slices"

var operations = []operation{insert, update, custom}

// played returns the operations that come about in the situation.
func (s *situation) played() []operation {
	if s.only != nil {
		return s.only
	}
	return slices.Concat(operations, s.also)
}

// writes are the statements of an operation, as the points after them count.
var writes = map[operation]struct{ inserted, updated, executed int }{
	insert:   {1, 0, 1},
	update:   {0, 1, 2},
	sending:  {0, 1, 0},
	custom:   {1, 1, 4},
	transfer: {0, 2, 4},
	crew:     {1, 1, 0},
	requests: {1, 1, 0},
	request:  {1, 1, 3}, // of the claim
	refusal:  {2, 1, 4}, // of two claims
}

// passing are the operations that pass a point which not all do.
var passing = map[string][]operation{
	"guard/second-key": {transfer, request, refusal},
	"guard/claimed":    {request, refusal},
	"guard/answered":   {request, refusal},
	"guard/refusing":   {refusal},
}

// secondly are the points that a refusal passes in its second transaction, and in its first.
var secondly = []string{"dbtx/before-begin", "dbtx/begun", "guard/claimed"}

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
	case s.call != nil:
		return max(s.call.nth[point], 1)
	case op == s.refuses, passing[point] != nil && !slices.Contains(passing[point], op):
		return 0
	case point == "dbtx/inserted":
		return writes[op].inserted
	case point == "dbtx/updated":
		return writes[op].updated
	case point == "dbtx/executed":
		return writes[op].executed
	case op == refusal && slices.Contains(secondly, point):
		return 2
	}
	return 1
}
