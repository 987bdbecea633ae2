package catalogue_test

import (
	"testing"

	"github.com/belaygo/belay/internal/dbtx/catalogue"
)

// TestLimit: an unsigned column of integers keeps twice as many, one of floating-point
// numbers does not.
func TestLimit(t *testing.T) {
	for _, tt := range []struct {
		column catalogue.Column
		want   int64 // 0: none
	}{
		{catalogue.Column{Kind: "smallint"}, 1<<15 - 1},
		{catalogue.Column{Kind: "smallint", Unsigned: true}, 1<<16 - 1},
		{catalogue.Column{Kind: "float", Unsigned: true}, 1 << 24},
		{catalogue.Column{Kind: "double", Unsigned: true}, 1 << 53},
		{catalogue.Column{Kind: "bigint", Unsigned: true}, 0},
	} {
		if n, ok := tt.column.Limit("mysql"); n != tt.want || ok != (tt.want > 0) {
			t.Errorf("%+v: limit is %d, %v, want %d", tt.column, n, ok, tt.want)
		}
		if n, ok := tt.column.Limit("sqlite"); ok {
			t.Errorf("%+v: limit is %d on SQLite, want none", tt.column, n)
		}
	}
}

// TestIntegers: a word in the type makes integers on SQLite alone.
func TestIntegers(t *testing.T) {
	for kind, want := range map[string]struct{ server, sqlite bool }{
		"bigint":        {true, true},
		"tinyint":       {true, true},
		"integer":       {true, true},
		"point":         {false, true},
		"interval":      {false, true},
		"UNSIGNED INT8": {true, true},
		"positive_int":  {true, true},
		"int4range":     {false, true},
		"integer[]":     {false, true},
		"numeric":       {false, false},
		"text":          {false, false},
	} {
		for dialect, want := range map[string]bool{"mysql": want.server, "postgres": want.server, "sqlite": want.sqlite} {
			if got := (catalogue.Column{Kind: kind}).Integers(dialect); got != want {
				t.Errorf("%s on %s: %v, want %v", kind, dialect, got, want)
			}
		}
	}
}
