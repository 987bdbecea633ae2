// Package catalogue reads the database's description of a table: its columns, its
// unique indexes, and the facts on which the proofs in its rows depend. It also
// compares the names of tables and columns.
package catalogue
