package journal

import (
	"testing"

	"github.com/belaygo/belay/internal/dbtx/protected"
)

// TestUnknownSavepoint: when the transaction goes back to a savepoint that it did
// not see, any of its writes may be left.
func TestUnknownSavepoint(t *testing.T) {
	j := New(nil, false)
	j.writes = []Write{{How: Plain, Table: "orders", Rows: []*protected.Row{{}}}}
	if c := j.Coverage(nil); !c.Covered {
		t.Fatalf("coverage is %+v", c)
	}
	j.RolledBackTo("nowhere")
	if c := j.Coverage([]*protected.Row{{Table: "stocks"}}); c.Covered {
		t.Errorf("coverage is %+v, want none", c)
	}
}
