package measure

import (
	"fmt"
	"slices"
	"strings"
)

// Choose returns those of all that list names, with commas between the names: in the
// order of all. The empty list names all.
func Choose[T any](list string, all []T, name func(T) string) ([]T, error) {
	if list == "" {
		return all, nil
	}
	var names, known []string
	for _, one := range all {
		if !slices.Contains(known, name(one)) {
			known = append(known, name(one))
		}
	}
	for text := range strings.SplitSeq(list, ",") {
		word := strings.TrimSpace(text)
		switch {
		case !slices.Contains(known, word):
			return nil, fmt.Errorf("%q is none of %s", word, strings.Join(known, ", "))
		case slices.Contains(names, word):
			return nil, fmt.Errorf("%q is named twice", word)
		}
		names = append(names, word)
	}
	return slices.DeleteFunc(slices.Clone(all), func(one T) bool { return !slices.Contains(names, name(one)) }), nil
}
