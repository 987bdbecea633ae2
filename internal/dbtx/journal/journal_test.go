package journal

import (
	"testing"

	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/dbtx/sqltext"
	"github.com/belaygo/belay/internal/dbtx/statement"
)

// TestUnknownSavepoint: when the transaction goes back to a savepoint that it did
// not see, any of its writes may be left.
func TestUnknownSavepoint(t *testing.T) {
	var j Journal
	j.writes = []Write{{How: statement.Plain, Table: "orders", Rows: []*protected.Row{{}}}}
	if c := j.Coverage(nil); !c.Covered {
		t.Fatalf("coverage is %+v", c)
	}
	j.RolledBackTo("nowhere")
	if c := j.Coverage([]*protected.Row{{Table: "stocks"}}); c.Covered {
		t.Errorf("coverage is %+v, want none", c)
	}
}

// TestFunctionMayWrite: what a function did that a SELECT called is not known.
func TestFunctionMayWrite(t *testing.T) {
	there, elsewhere := &protected.Row{Table: "orders"}, &protected.Row{Table: "stocks"}
	for query, want := range map[string]bool{"SELECT sell(1)": true, "SELECT count(*) FROM orders": false} {
		var j Journal
		j.Note(sqltext.Split(query, sqltext.MySQL)[0])
		if j.Wrote() != want || j.Coverage(nil).Wrote != want {
			t.Errorf("%s: wrote is %v, want %v", query, j.Wrote(), want)
		}
		j.writes = []Write{{How: statement.Plain, Table: "orders", Rows: []*protected.Row{there}}}
		if c := j.Coverage([]*protected.Row{there}); !c.Covered {
			t.Errorf("%s: coverage of the row that was written is %+v", query, c)
		}
		if c := j.Coverage([]*protected.Row{there, elsewhere}); c.Covered == want {
			t.Errorf("%s: coverage of another row is %+v, want covered %v", query, c, !want)
		}
	}
}

// TestMessages: messages are written, and say nothing of any row: they have touched none, and cover
// none.
func TestMessages(t *testing.T) {
	row := &protected.Row{Table: "orders", Columns: []string{"no"}}
	var j Journal
	j.Init(noFacts{}, true)
	j.NoteMessages("belay_message", false)
	if !j.Wrote() || !j.WroteRows() || j.OnlyKept() {
		t.Errorf("wrote %v, rows %v, only kept %v", j.Wrote(), j.WroteRows(), j.OnlyKept())
	}
	if j.Touched(row) || j.TouchedBefore(row) {
		t.Error("a message has touched a row")
	}
	if c := j.Coverage([]*protected.Row{row}); c.Wrote || c.Covered || len(c.Uncovered) > 0 {
		t.Errorf("coverage is %+v, want none", c)
	}
	j.writes = append(j.writes, Write{How: statement.Plain, Table: "orders", Rows: []*protected.Row{row}, Images: []Image{{Row: row, inserted: true}}})
	j.NoteMessages("belay_message", true)
	if n := len(j.Images()); n != 1 {
		t.Errorf("%d images, want that of the row", n)
	}
	if c := j.Coverage([]*protected.Row{row}); !c.Covered || len(c.Uncovered) > 0 {
		t.Errorf("coverage is %+v", c)
	}
	var repeated Journal
	repeated.NoteMessages("belay_message", true)
	if repeated.WroteRows() {
		t.Error("a message that was there already was written")
	}
}

// noFacts are tables of which nothing is known.
type noFacts struct{}

func (noFacts) Facts(string) catalogue.Facts { return catalogue.Facts{} }
