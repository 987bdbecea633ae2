package protected

import "testing"

// TestMemoryIsOfOneServer: another server may be behind, and what it shows would look like
// a write since.
func TestMemoryIsOfOneServer(t *testing.T) {
	var m Memory
	row := &Row{Table: "orders"}
	m.Use("one")
	m.See(row, Reading{Found: true, Version: 7})
	m.Use("one")
	if first, ok := m.Recall(row); !ok || first.Version != 7 {
		t.Errorf("the next attempt recalls %+v, %v", first, ok)
	}
	m.Use("two")
	if first, ok := m.Recall(row); ok {
		t.Errorf("on another server it recalls %+v", first)
	}
}
