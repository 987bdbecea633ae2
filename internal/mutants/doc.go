// Package mutants breaks Belay on purpose, in named ways, and checks that a test notices.
//
// A mutant is a plausible mistake: a condition dropped, two lines swapped, an error taken
// for another. For each one the tests are named that must turn red. They are compiled with
// `go test -c -overlay`, which replaces one file for that build only, so nothing in the
// tree changes. A mutant that no test notices has survived: a test is missing.
//
//	make mutants                          # all of them
//	make mutants MUTANTS=delete-by-id     # one, or several with commas between
//	make mutants MUTANTS=10               # so many, spread over the table
//
// In every run of the tests, and without a server, TestTable checks that each mutant still
// applies: what it replaces is in the file just once, and its tests exist. TestCompile checks that
// it compiles, TestPromises that each promise of docs/guarantees.md has a mutant, and TestFaults
// that those of docs/faults.md are in the table.
//
// TestWorth prints what each test is worth, and what it takes: the mutants for which it alone is
// named, those that it shares, the faults and promises that name it, and its seconds. At the end
// are those that take two seconds or more and that nothing names. They may be worth something: the table has
// no mutant for what many tests notice.
//
//	go test -json -race -p 1 ./guard/... >/tmp/guard.json # with servers that are up
//	BELAY_WORTH='/tmp/*.json' go test -run TestWorth -v ./internal/mutants
//
// First, each group of tests must pass without a mutant. A mutant that does not compile is
// an error of the table. So is a panic, or a test that does not end in time, unless the
// mutant says that it is expected.
package mutants
