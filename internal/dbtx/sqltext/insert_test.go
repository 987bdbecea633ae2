package sqltext

import (
	"reflect"
	"testing"
)

func TestParseInsert(t *testing.T) {
	arg := func(n int) Term { return Term{Arg: n} }
	unknown := Term{Unknown: true}
	for _, tt := range []struct {
		query   string
		grammar Grammar
		table   string
		columns []string
		rows    [][]Term // nil: it can't be read
		marks   int
	}{
		{"INSERT INTO sales (no, buyer) VALUES (?, ?)", MySQL, "sales", []string{"no", "buyer"}, [][]Term{{arg(1), arg(2)}}, 2},
		{"-- name: Sale :exec\ninsert into sales(no,buyer) values ($2,$1);", Postgres, "sales", []string{"no", "buyer"}, [][]Term{{arg(2), arg(1)}}, 2},
		{"INSERT INTO \"shop\".\"Sales\" (\"no\") VALUES ($1) RETURNING \"id\"", Postgres, "shop.Sales", []string{"no"}, [][]Term{{arg(1)}}, 1},
		{"INSERT INTO `sales` (`no`) VALUES ('it''s'), (-7), (NULL), (1.5), (DEFAULT)", MySQL, "sales", []string{"no"},
			[][]Term{{{Literal: "it's"}}, {{Literal: int64(-7)}}, {{}}, {unknown}, {unknown}}, 0},
		{"INSERT INTO t (a, b) VALUES (lower(?), ?)", MySQL, "t", []string{"a", "b"}, [][]Term{{unknown, arg(2)}}, 2},
		{"INSERT INTO t (a, b) VALUES ($1::uuid, coalesce($2, ')'))", Postgres, "t", []string{"a", "b"}, [][]Term{{unknown, unknown}}, 2},
		{"INSERT INTO t (a) VALUES (E'x')", Postgres, "t", []string{"a"}, [][]Term{{unknown}}, 0},
		{"INSERT INTO t (a) VALUES (?2), (:b), (@c)", Standard, "t", []string{"a"}, [][]Term{{arg(2)}, {{Name: "b"}}, {{Name: "c"}}}, 2},
		{"INSERT INTO t (a) VALUES ('x' || ?)", Standard, "t", []string{"a"}, [][]Term{{unknown}}, 1},
		{"INSERT INTO t (a) VALUES ('x\\'y'), (\"it\"\"s\"), ('x\\n')", MySQL, "t", []string{"a"}, [][]Term{{{Literal: "x'y"}}, {{Literal: `it"s`}}, {unknown}}, 0},
		{"INSERT INTO t (a) VALUES (\"x\")", MySQLANSI, "t", []string{"a"}, [][]Term{{unknown}}, 0},
		{"INSERT t (a) VALUES (?)", MySQL, "t", []string{"a"}, [][]Term{{arg(1)}}, 1},
		{"INSERT INTO [t] (a) VALUES (?)", Standard, "t", []string{"a"}, [][]Term{{arg(1)}}, 1},
		{"INSERT INTO [t (a) VALUES (?)", Standard, "", nil, nil, 0},
		{"INSERT t (a) VALUES (?)", Postgres, "", nil, nil, 0},
		{"INSERT INTO t (a, b) VALUES (/*!999999 1, 'x'), ( */ 2, 'y')", MySQL, "", nil, nil, 0},
		{"INSERT INTO t (a, b) VALUES (/*M!999999 1, 'x'), ( */ 2, 'y')", MySQLPlain, "", nil, nil, 0},
		{"INSERT INTO t (a) VALUES ('x\\", MySQL, "", nil, nil, 0},
		{"INSERT INTO t (a) VALUES (?) ON CONFLICT DO NOTHING", Standard, "", nil, nil, 0},
		{"INSERT INTO t (a) VALUES (?) ON DUPLICATE KEY UPDATE a = 1", MySQL, "", nil, nil, 0},
		{"INSERT IGNORE INTO t (a) VALUES (?)", MySQL, "", nil, nil, 0},
		{"INSERT INTO t (a) SELECT 1", MySQL, "", nil, nil, 0},
		{"INSERT INTO t VALUES (?)", MySQL, "", nil, nil, 0},
		{"INSERT INTO t (a, b) VALUES (?)", MySQL, "", nil, nil, 0},
		{"INSERT INTO t (a) VALUES (?); DELETE FROM t", MySQL, "", nil, nil, 0},
		{"REPLACE INTO t (a) VALUES (?)", MySQL, "", nil, nil, 0},
		{"UPDATE t SET a = 1", MySQL, "", nil, nil, 0},
		{"", MySQL, "", nil, nil, 0},
	} {
		in, ok := ParseInsert(tt.query, tt.grammar)
		if ok != (tt.rows != nil) {
			t.Errorf("%s: read: %t", tt.query, ok)
			continue
		}
		if ok && (in.Table != tt.table || !reflect.DeepEqual(in.Columns, tt.columns) || !reflect.DeepEqual(in.Rows, tt.rows) || in.Marks != tt.marks) {
			t.Errorf("%s: %+v", tt.query, in)
		}
	}
}

// FuzzParseInsert: whatever a program writes, nothing panics, and each row has a value for each
// column.
func FuzzParseInsert(f *testing.F) {
	f.Add("INSERT INTO t (a) VALUES (?, 'x''y', $1)")
	f.Add("INSERT INTO `t` (\"a\") VALUES (E'\\")
	f.Fuzz(func(t *testing.T, query string) {
		for g := Standard; g <= MySQLPlain; g++ {
			in, ok := ParseInsert(query, g)
			for _, row := range in.Rows {
				if ok && len(row) != len(in.Columns) {
					t.Errorf("%q: %d values for %d columns", query, len(row), len(in.Columns))
				}
			}
		}
	})
}
