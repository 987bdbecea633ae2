package notify

import "regexp"

// Trace is a W3C trace context. In the JSON of an Event it is the CloudEvents
// extension for distributed tracing.
type Trace struct {
	Parent string // traceparent: version, trace id, span id and flags, in hex
	State  string // tracestate: what vendors add; may be empty
}

var (
	traceParent = regexp.MustCompile(`^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$`)
	traceState  = regexp.MustCompile(`^[ -~]{0,512}$`)
)

// Checked returns t if it is a trace context, and else nothing, as W3C has it:
// an event must not be refused for its trace.
func (t Trace) Checked() Trace {
	parts := traceParent.FindStringSubmatch(t.Parent)
	if parts == nil || t.Parent[:2] == "ff" || zero(parts[1]) || zero(parts[2]) {
		return Trace{}
	}
	if !traceState.MatchString(t.State) {
		t.State = ""
	}
	return t
}

func zero(hex string) bool {
	for i := range len(hex) {
		if hex[i] != '0' {
			return false
		}
	}
	return true
}
