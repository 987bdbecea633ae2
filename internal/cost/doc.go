// Package cost has a test that counts what one operation of one caller costs: round trips,
// statements of the database, commands of Redis, and allocations. It opens a guard on real servers
// over connections that note each request, and compares the counts with the ceilings in
// testdata, one file for each database:
//
//	Apply(Insert): 5 trips, 3 statements, 2 commands, 250 allocations, 1 fsyncs
//		redis acquire
//		sql START TRANSACTION WITH CONSISTENT SNAPSHOT
//		sql INSERT INTO `orders` (`no`,`amount`) VALUES (?,?)
//		sql COMMIT
//		redis release
//
// A request that travels with the one before it begins with a plus sign. A count above its ceiling
// fails the test, which names the new request and prints all of them in order. A count below it
// fails, too: then the ceiling comes down.
//
// Trips, statements and commands do not depend on the machine. Allocations may exceed their ceiling
// by one part in twenty, and are not counted by the race detector's programs. Fsyncs are those of
// the whole server, so they are counted only by "make cost", which has the servers for itself.
//
// BELAY_COST=write, or make cost WRITE=1, writes the files anew, and the table in docs/scale.md.
// The servers' own counters, and how they grow with the tables, are measured by the benchmark.
package cost
