// Package catalogue reads from the database what it knows of a table: its columns, its
// unique indexes, and the facts that decide what its rows prove. It also compares the
// names of tables and columns.
package catalogue
