package reader

import (
	"strings"

	"github.com/belaygo/belay/internal/dbtx/catalogue"
)

// OnlyIndex reports whether no other table of its schema is known to have an index of the
// name.
func (q *Reader) OnlyIndex(table, index string) bool {
	if strings.EqualFold(index, "PRIMARY") {
		return false
	}
	ctx, cancel := q.Context()
	defer cancel()
	others, err := catalogue.OthersHaveIndex(q.DB(ctx), table, index)
	return err == nil && !others
}
