package dialect

import "testing"

// TestDefers: statements are sent together to a PostgreSQL that reports what is read of a transaction, and
// to no server that only resembles one, or is told to.
func TestDefers(t *testing.T) {
	plain := Session{ID: 7, Run: "1764500000.5 1764400000", Numbers: true, Family: PostgreSQL, LockWait: "0"}
	if !plain.Defers() {
		t.Error("a PostgreSQL does not defer")
	}
	for name, change := range map[string]func(*Session){
		"PostgreSQL 12":          func(s *Session) { s.Numbers = false },
		"rights are few":         func(s *Session) { s.Run = "" },
		"a server like it":       func(s *Session) { s.Family = likePostgres },
		"it is told to be like":  func(s *Session) { s.Told = likePostgres },
		"of another kind":        func(s *Session) { *s = Session{Family: MariaDB} },
		"no bound of lock waits": func(s *Session) { s.LockWait = "" },
	} {
		s := plain
		if change(&s); s.Defers() {
			t.Errorf("%s: it defers", name)
		}
	}
	for text, want := range map[string]Transaction{
		"815 7 1764500000.5": {Number: "815", Own: true},
		" 7 1764500000.5":    {Own: true},
		"815 8 1764500000.5": {Number: "815"},
		"815 7 1764500000.6": {Number: "815"},
		"":                   {},
	} {
		if got := plain.Transaction(text); got != want {
			t.Errorf("%q is %+v, want %+v", text, got, want)
		}
	}
}
