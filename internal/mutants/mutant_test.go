package mutants

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// root is where the repository begins.
const root = "../.."

// A mutant is one way to break Belay.
type mutant struct {
	name   string
	loses  string // what a user would lose
	file   string // from the root
	old    string // is in the file just once
	new    string
	tests  string // that notice it: "folder TestA TestB"
	panics bool   // it is noticed by a panic, or by a test that does not end
}

// folder is where the tests of the mutant are, from the root.
func (m mutant) folder() string {
	folder, _, _ := strings.Cut(m.tests, " ")
	return folder
}

// testNames are the tests that must notice the mutant.
func (m mutant) testNames() []string { return strings.Fields(m.tests)[1:] }

// pattern is the -run of the tests.
func (m mutant) pattern() string { return "^(" + strings.Join(m.testNames(), "|") + ")$" }

// apply returns the file as the mutant has it.
func (m mutant) apply() (string, error) {
	text, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), m.old); n != 1 {
		return "", fmt.Errorf("what it replaces is %d times in %s, want once", n, m.file)
	}
	return strings.Replace(string(text), m.old, m.new, 1), nil
}

// module returns the folder of the module that a folder is in, and the folder from there.
func module(folder string) (mod, rest string) {
	for _, mod := range []string{"cmd/guard-monitor", "guard/pgxguard", "grpcguard", "lock/etcdlock", "lock/zklock"} {
		if rest, ok := strings.CutPrefix(folder, mod); ok {
			return mod, "." + rest
		}
	}
	return ".", "./" + path.Clean(folder)
}

// table is all mutants.
var table = concat(lockMutants, redisMutants, sqlMutants, quorumMutants, etcdMutants, zkMutants, switchMutants, guardMutants, onceMutants, callMutants, messageMutants, httpMutants, verdictMutants, databaseMutants, pipelineMutants, resolveMutants,
	outboxMutants, webhookMutants, brokerMutants, monitorMutants, siteMutants)

func concat(lists ...[]mutant) (all []mutant) {
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

// few are quick to build and to notice, and are run for every change.
var few = "err-trusts-the-watchdog,overlap-needs-a-lost-lock,version-not-compared,delete-by-id,old-news-undoes-a-takeover"
