// Package journal notes what a transaction writes: by which kind of statement, to which
// rows, and as what they were left. That decides what the database would refuse a
// second time (Coverage) and whether a row shows what others wrote (Touched). It also
// decides what a row proves that is found after a COMMIT without an answer (Image).
package journal
