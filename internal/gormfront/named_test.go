package gormfront_test

import (
	"slices"
	"testing"

	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/gormfront"
	"github.com/belaygo/belay/internal/testdb"
)

// Seat has a unique index whose columns are in another order than its fields.
type Seat struct {
	ID   uint
	Row  int    `gorm:"uniqueIndex:place,priority:2"`
	Hall string `gorm:"uniqueIndex:place,priority:1"`
}

// TestRowIsOneInAnyOrder: Protect takes the columns in the order of the fields, and ProtectNew
// in that of the index. They name one row.
func TestRowIsOneInAnyOrder(t *testing.T) {
	m, err := gormfront.New(testdb.OpenSQLite(t, t.TempDir()+"/a.db"), false).Parse(t.Context(), &Seat{Row: 7, Hall: "a"})
	testdb.WantNil(t, err)
	set, index := m.Row(m.Set(), protected.Row{}), m.Row([]string{"hall", "row"}, protected.Row{})
	if !set.SameShape(index) || set.Identity() != index.Identity() {
		t.Errorf("the rows are %v %v and %v %v", set.Columns, set.Values, index.Columns, index.Values)
	}
	if want := []any{"a", 7}; !slices.Equal(index.Values, want) || !slices.Equal(set.Values, want) {
		t.Errorf("the values are %v and %v, want %v", index.Values, set.Values, want)
	}
}
