// Package gormsuite has tests which run the features of gorm with dbguard and
// without it, outside and inside of a transaction, and compare the two: the SQL,
// the errors, the order of the hooks, and what is read.
package gormsuite
