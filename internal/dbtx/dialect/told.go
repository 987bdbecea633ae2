package dialect

import (
	"fmt"
	"slices"
	"strings"
)

// short are the names of families that have none of their own, in a configuration.
var short = map[Family]string{likeMySQL: "other", likePostgres: "other", shards: "sharded"}

// Told returns the family of a dialect's servers that a program's configuration names, in upper or
// lower case; "" is none. The families that Belay knows cannot be named: what a server does not show
// is not believed.
func Told(dialect, name string) (Family, error) {
	if name == "" {
		return "", nil
	}
	var names []string
	for _, k := range alike[dialect] {
		known := string(k.family)
		if s, ok := short[k.family]; ok {
			known = s
		}
		if strings.EqualFold(known, name) {
			return k.family, nil
		}
		names = append(names, known)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) == 0 {
		return "", fmt.Errorf("%q: no server resembles the database %q", name, dialect)
	}
	return "", fmt.Errorf("%q is no server that resembles the database %q: want one of %s", name, dialect, strings.Join(names, ", "))
}

// As returns the session of a server that is of the family told, unless told is "".
func (s Session) As(told Family) Session {
	s.Told = told
	if s.Proven().Resembles() {
		s.Numbers, s.Sampled = false, false
	}
	return s
}

// Proven returns the family by which outcomes are proven: of the one that the server shows and the
// one that was told, the one that proves less.
func (s Session) Proven() Family {
	if s.Told.proofs() < s.Family.proofs() {
		return s.Told
	}
	return s.Family
}

// proofs ranks families by what proves an outcome there.
func (f Family) proofs() int {
	if !f.Resembles() {
		return 3
	}
	switch k := f.kin(); {
	case k.commitsInParts:
		return 0 // nothing
	case k.rolledBack == nil:
		return 1 // what Belay wrote itself
	}
	return 2 // and some errors
}

// Doubt returns what proves no outcome of a COMMIT in this family, which resembles another.
func (f Family) Doubt() string {
	if f.CommitsInParts() {
		return "nothing proves the outcome of a COMMIT without an answer"
	}
	return "a row that is missing or old proves no outcome of a COMMIT without an answer"
}
