// Package doctor is what belay.Doctor and guard-monitor doctor share: what a finding is,
// and the list of all checks.
//
//	found = append(found, doctor.RedisEviction.Found("10.0.0.3:6379", "maxmemory-policy is %s", policy))
//
// The parts of Belay look at their own servers and return findings; [Run] makes one
// list of them. The checks are listed in one place, so that a name, a severity and a fix
// stand once, and the table in docs/setup.md can be held to them.
package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/belaygo/belay/internal/parallel"
)

// Severity is how bad a finding is.
type Severity string

const (
	// Error: operations fail, or a promise does not hold.
	Error Severity = "error"
	// Warning: Belay works, and a fault will cost more than it has to.
	Warning Severity = "warning"
	// Note: it is right if a condition holds that no check can see. The finding names it.
	Note Severity = "note"
	// Unchecked: nothing is known, as the check could not be made.
	Unchecked Severity = "unchecked"
)

// A Check is a kind of mistake that is looked for.
type Check struct {
	Name     string // begins with the part it is about: db, redis, lock, guard, events, monitor
	Severity Severity
	Fix      string
}

// A Finding is a mistake in a set-up, or a check that could not be made.
type Finding struct {
	Check    string // its name in the table of docs/setup.md, as redis-eviction
	Severity Severity
	Subject  string // what has it: a server, a table, a setting
	Problem  string
	Fix      string // in one sentence
	Err      error  // what failed, if something did
}

// A Diagnoser is a part of Belay that looks for mistakes around it. It changes nothing, or
// undoes it, and returns soon after its context has ended.
type Diagnoser interface {
	Diagnose(ctx context.Context) []Finding
}

// A ServiceDiagnoser is a Diagnoser that looks at what one service may do.
type ServiceDiagnoser interface {
	Diagnose(ctx context.Context, service string) []Finding
}

// String returns the finding in one line.
func (f Finding) String() string {
	return fmt.Sprintf("%s %s: %s: %s. Fix: %s", f.Severity, f.Check, f.Subject, f.Problem, f.Fix)
}

// Found returns a finding of the check.
func (c Check) Found(subject, format string, args ...any) Finding {
	return Finding{Check: c.Name, Severity: c.Severity, Subject: subject, Problem: fmt.Sprintf(format, args...), Fix: c.Fix}
}

// Failed returns a finding whose problem is an error.
func (c Check) Failed(subject string, err error) Finding {
	f := c.Found(subject, "%v", err)
	f.Err = err
	return f
}

// Unmade returns that the check could not be made, and what to do so that it can.
func (c Check) Unmade(subject string, why error, fix string) Finding {
	return Finding{Check: c.Name, Severity: Unchecked, Subject: subject, Problem: fmt.Sprintf("not checked: %v", why), Fix: fix, Err: why}
}

// Unread returns that the check could not be made, as the server did not say what is set.
func (c Check) Unread(subject, setting, fix string) Finding {
	return c.Unmade(subject, fmt.Errorf("could not read %s: the server does not name it", setting), fix)
}

// Fixed returns f with a fix of its own.
func (f Finding) Fixed(format string, args ...any) Finding {
	f.Fix = fmt.Sprintf(format, args...)
	return f
}

// Run makes all examinations at once. It returns what they find as one list: errors come
// first, and what several subjects have in common is one finding.
func Run(ctx context.Context, examine ...func(context.Context) []Finding) (found []Finding) {
	parts := make([][]Finding, len(examine))
	parallel.Do(len(examine), func(i int) { parts[i] = examine[i](ctx) })
	all, order := slices.Concat(parts...), []Severity{Error, Warning, Note, Unchecked}
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Severity), slices.Index(order, b.Severity)),
			cmp.Compare(a.Check, b.Check), cmp.Compare(a.Subject, b.Subject))
	})
	for _, f := range all {
		same := func(g Finding) bool {
			return g.Check == f.Check && g.Severity == f.Severity && g.Problem == f.Problem && g.Fix == f.Fix
		}
		if i := slices.IndexFunc(found, same); i < 0 {
			found = append(found, f)
		} else if !slices.Contains(strings.Split(found[i].Subject, ", "), f.Subject) {
			found[i].Subject += ", " + f.Subject
		}
	}
	return found
}
