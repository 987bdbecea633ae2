//go:build failpoints

package failpoints_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/fail"
	"github.com/belaygo/belay/internal/testproc"
)

// patience bounds the life of a process. One that is to die has died long before.
const patience = 60 * time.Second

// roleVariable holds the role, as JSON, of a process that a test starts.
const roleVariable = "BELAY_FAILPOINTS_ROLE"

// A role is what a process of this program does instead of tests.
type role struct {
	Monitor *monitorRole
	Service *serviceRole
	Relay   *relayRole
}

// process is a running role.
type process struct{ *testproc.Process }

// start starts a role, which dies at point if that is not empty.
func start(t *testing.T, name, point string, r role) *process {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return &process{testproc.Start(t, name, testproc.Self(roleVariable+"="+string(text), fail.Variable+"="+point))}
}

// await waits until the process has said n lines that begin with a word, and returns what
// follows in each.
func (p *process) await(word string, n int) (rest []string) {
	for _, line := range p.AwaitAll(word, n, func(line string) bool { return strings.HasPrefix(line, word) }) {
		rest = append(rest, strings.TrimSpace(strings.TrimPrefix(line, word)))
	}
	return rest
}

// died waits until the process has killed itself. It reports false if it does not.
func (p *process) died() bool {
	select {
	case <-p.Exited():
		return p.WasKilled()
	case <-time.After(patience):
		return false
	}
}

// intercepted returns the event that the error of an operation has named.
func (p *process) intercepted() (id string, ok bool) {
	if p == nil {
		return "", false
	}
	for _, line := range p.Lines() {
		if id, ok = strings.CutPrefix(line, "ended intercepted "); ok {
			return id, true
		}
	}
	return "", false
}

// answers returns those that the process has said.
func (p *process) answers() (all []string) {
	for _, line := range p.Lines() {
		if answer, ok := strings.CutPrefix(line, "answer "); ok {
			all = append(all, answer)
		}
	}
	return all
}
