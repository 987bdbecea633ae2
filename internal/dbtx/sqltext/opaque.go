package sqltext

// Opaque reports whether a statement of MySQL or MariaDB runs others that its words do not
// show, as CALL and EXECUTE do: these may end the transaction. A function or a trigger
// cannot. An unknown statement is opaque.
func (st Statement) Opaque() bool {
	words := st.Words()
	switch words[0] {
	case "SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "WITH", "VALUES", "TABLE", "DO", "HANDLER", "LOAD",
		"SAVEPOINT", "ROLLBACK", "RELEASE", "SHOW", "EXPLAIN", "DESC", "DESCRIBE", "HELP", "CHECKSUM", "USE",
		"CREATE", "DROP", "PREPARE", "DEALLOCATE", "SIGNAL", "RESIGNAL", "GET", "KILL":
		return false
	case "SET":
		return len(words) > 1 && words[1] == "DEFAULT" // a role
	}
	return true
}
