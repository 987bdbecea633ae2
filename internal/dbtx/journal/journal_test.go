package journal

import (
	"testing"

	"github.com/belaygo/belay/internal/dbtx/protected"
)

// TestUnheardOfSavepoint: when the transaction goes back to a savepoint that was set
// behind its back, nobody knows what is left of its writes.
func TestUnheardOfSavepoint(t *testing.T) {
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
