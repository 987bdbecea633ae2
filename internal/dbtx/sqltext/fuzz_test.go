package sqltext

import "testing"

// TestUnterminated: what is cut off in the middle is the server's to refuse.
func TestUnterminated(t *testing.T) {
	for _, g := range grammars {
		for _, query := range unterminated {
			split(text{query, g})
		}
	}
}

var grammars = []Grammar{Standard, Postgres, MySQL, MySQLANSI, MySQLPlain}

var unterminated = []string{
	`SELECT 'abc\`, `SELECT "abc\`, "SELECT `abc\\", `SELECT E'abc\`, `SELECT 'abc''`, "SELECT $", "SELECT $$", "SELECT $a$b",
	"SELECT /*", "SELECT /*!", "SELECT /*M!50000", "SELECT --", "SELECT #", "SET STATEMENT a = 1 FOR", "SET STATEMENT a = 1 FOR `b`",
	"INSERT", "UPDATE", "UPDATE a.", "DELETE", "CREATE OR REPLACE", "/*!", "SET", "WITH",
}

// FuzzSplit: no text makes the scanner or a question about a statement panic.
func FuzzSplit(f *testing.F) {
	for _, query := range unterminated {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		for _, g := range grammars {
			for _, st := range split(text{query, g}) {
				st.Calls()
				st.ChangesVisibility()
				st.Controls()
				st.Last()
				st.Opaque()
				st.SetsDefaults()
				st.SetsIsolation()
				st.SetsLater()
				st.SetsMode()
				st.SetsPath()
				st.Writes()
			}
		}
	})
}
