// Package journal records a transaction's writes: the kind of each statement, its rows,
// and their new values. From these it derives which writes the database would refuse a
// second time (Coverage), whether a row shows other writers' changes (Touched), and the
// proof in a row after a COMMIT without an answer (Image).
package journal
