package reader

import (
	"context"

	"github.com/belaygo/belay/internal/dbtx/protected"
)

// Those reads which of rows exist. sure is false if it has found one that is equal to
// one of them by the database's comparison, but not by Go's.
func (q *Reader) Those(ctx context.Context, rows []*protected.Row) (there map[*protected.Row]bool, sure bool, err error) {
	there, sure = make(map[*protected.Row]bool), true
	for len(rows) > 0 {
		var alike, rest []*protected.Row
		for _, r := range rows {
			if r.SameShape(rows[0]) {
				alike = append(alike, r)
			} else {
				rest = append(rest, r)
			}
		}
		found, err := q.access().loader.LoadThose(ctx, alike)
		if err != nil {
			return nil, false, err
		}
		for _, value := range found {
			is := false
			for _, r := range alike {
				if r.Is(value) {
					there[r], is = true, true
				}
			}
			sure = sure && is
		}
		rows = rest
	}
	return there, sure, nil
}
