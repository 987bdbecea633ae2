// Package journal notes what a transaction writes: by which kind of statement, to which
// rows, and as what they were left. From that follows what the database would refuse a
// second time (Coverage), whether a row shows what others wrote (Touched), and what a row
// that is found after a COMMIT without an answer proves (Image).
package journal
