package web

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
)

// Reason says why a message was sent.
func (v *view) Reason(reason string) string {
	var groups int
	if _, err := fmt.Sscanf(reason, "digest of %d groups", &groups); err == nil {
		return v.T("reason.digest", groups)
	}
	return v.Word("reason.", reason)
}

// failures are the words of package receiver about an answer, by the text that stands for them.
var failures = map[string]*regexp.Regexp{
	"failed.status":  regexp.MustCompile(`^status (\d+): (.*)$`),
	"failed.code":    regexp.MustCompile(`^code (-?\d+): (.*)$`),
	"failed.no_code": regexp.MustCompile(`^the answer has no code: (.*)$`),
	"failed.not_ok":  regexp.MustCompile(`^the answer is not ok: (.*)$`),
}

// Failed says why a message was not delivered. What a receiver answered stays in its language,
// as does an error of the network.
func (v *view) Failed(n store.Notification) string {
	why := line(strings.TrimPrefix(n.Error, fmt.Sprintf("receiver %q: ", n.Receiver)))
	for key, known := range failures {
		m := known.FindStringSubmatch(why)
		if m == nil {
			continue
		}
		var args []any
		for _, part := range m[1:] {
			if part == "no reason given" {
				part = v.T("failed.silent")
			}
			args = append(args, part)
		}
		why = v.T(key, args...)
		break
	}
	return v.T("failed", why)
}
