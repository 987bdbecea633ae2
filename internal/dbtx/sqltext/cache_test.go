package sqltext

import (
	"fmt"
	"strings"
	"testing"
)

// TestCacheTellsDatabasesApart: a text may be one statement to MySQL and two to another
// database.
func TestCacheTellsDatabasesApart(t *testing.T) {
	const query = `SELECT 'a\'; COMMIT; -- '`
	for range 2 {
		if n := len(Split(query, MySQL)); n != 1 {
			t.Errorf("with escapes %d statements, want 1", n)
		}
		if n := len(Split(query, Standard)); n != 2 {
			t.Errorf("without escapes %d statements, want 2", n)
		}
	}
}

// TestCacheIsBounded: texts with values in them come once only, and each would be kept.
func TestCacheIsBounded(t *testing.T) {
	var c cache
	long := "DELETE FROM t WHERE a = '" + strings.Repeat("x", maxTextLen) + "'"
	if table, _ := c.statements(text{query: long})[0].Writes(); table != "t" || len(c.texts) != 0 {
		t.Errorf("of a long text the table is %q, and %d texts are kept", table, len(c.texts))
	}
	for i := range 2*maxTexts + 1 {
		if table, _ := c.statements(text{query: fmt.Sprintf("DELETE FROM t%d", i)})[0].Writes(); table != fmt.Sprint("t", i) {
			t.Errorf("the table is %q, want t%d", table, i)
		}
		if len(c.texts) > maxTexts {
			t.Fatalf("%d texts are kept", len(c.texts))
		}
	}
}
