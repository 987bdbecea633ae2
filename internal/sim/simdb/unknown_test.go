package simdb_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/belaygo/belay/internal/sim/simdb"
)

// TestUnknown: what is not compared with real servers is reported, and not answered.
func TestUnknown(t *testing.T) {
	for _, sql := range []string{
		"SELECT 1",
		"SELECT amount FROM orders WHERE nothing = 1",
		"SELECT amount FROM orders WHERE no = 1",
		"SELECT amount FROM orders WHERE amount >= 1",
		"SELECT amount FROM orders ORDER BY amount",
		"SELECT amount FROM orders FOR UPDATE",
		"SELECT amount FROM orders, stocks",
		"SELECT MAX(amount) FROM orders",
		"INSERT INTO orders (no) SELECT no FROM orders",
		"INSERT INTO orders (id, no) VALUES (1, 'a')",
		"UPDATE orders SET no = 'b'  WHERE no = 'a'",
		"UPDATE orders SET amount = no + 1 WHERE no = 'a'",
		"UPDATE orders SET amount = 2 WHERE no = 'a' LIMIT 1",
		"DELETE FROM orders WHERE no = 'a' ORDER BY id",
		"CREATE TABLE pairs (a BIGINT, b BIGINT, PRIMARY KEY (a, b))",
	} {
		synctest.Test(t, func(t *testing.T) {
			var reported error
			sdb := simdb.New(simdb.MariaDB, simdb.Knobs{Unknown: func(err error) { reported = err }})
			sdb.Exec(append(tables[false], "INSERT INTO orders (no, amount) VALUES ('a', 1), ('b', 1)", "DELETE FROM orders WHERE id = 1",
				"INSERT INTO orders (no, amount) VALUES ('a', 1)")...)
			_, err := sqlOpen(t, sdb.Connector("p", open)).Exec(sql)
			if err == nil || reported == nil || !strings.Contains(reported.Error(), sql) {
				t.Errorf("%s: error is %v, reported is %v", sql, err, reported)
			}
		})
	}
}
