package cloudevent

import (
	"regexp"
	"strings"
)

var (
	traceParent = regexp.MustCompile(`^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$`)
	traceState  = regexp.MustCompile(`^[ -~]{0,512}$`)
)

// CheckTrace returns a W3C trace context as it is, and else nothing, as W3C has it:
// an event must not be refused for its trace.
func CheckTrace(parent, state string) (checkedParent, checkedState string) {
	parts := traceParent.FindStringSubmatch(parent)
	if parts == nil || parent[:2] == "ff" || zero(parts[1]) || zero(parts[2]) {
		return "", ""
	}
	if !traceState.MatchString(state) {
		state = ""
	}
	return parent, state
}

func zero(hex string) bool { return strings.Trim(hex, "0") == "" }
