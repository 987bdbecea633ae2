package dbtx

// ByRows has the outcome of a commit be found in the rows, as on a PostgreSQL before 13.
func (t *Tx) ByRows() { t.conn.Session.Numbers = false }

// Number is the number of the transaction at the database, once Commit has been called.
func (t *Tx) Number() string { return t.xid }
