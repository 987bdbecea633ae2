package notify_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/belaygo/belay/notify"
)

const aTraceParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestTraceIsCarried(t *testing.T) {
	for name, tc := range map[string]struct{ given, want notify.Trace }{
		"both":             {notify.Trace{Parent: aTraceParent, State: "a=1,b=2"}, notify.Trace{Parent: aTraceParent, State: "a=1,b=2"}},
		"parent alone":     {notify.Trace{Parent: aTraceParent}, notify.Trace{Parent: aTraceParent}},
		"later version":    {notify.Trace{Parent: "01" + aTraceParent[2:]}, notify.Trace{Parent: "01" + aTraceParent[2:]}},
		"state alone":      {notify.Trace{State: "a=1"}, notify.Trace{}},
		"no hex":           {notify.Trace{Parent: strings.Replace(aTraceParent, "4", "x", 1)}, notify.Trace{}},
		"upper case":       {notify.Trace{Parent: strings.ToUpper(aTraceParent)}, notify.Trace{}},
		"version ff":       {notify.Trace{Parent: "ff" + aTraceParent[2:]}, notify.Trace{}},
		"zero trace id":    {notify.Trace{Parent: "00-" + strings.Repeat("0", 32) + "-00f067aa0ba902b7-01"}, notify.Trace{}},
		"zero span id":     {notify.Trace{Parent: aTraceParent[:36] + strings.Repeat("0", 16) + "-01"}, notify.Trace{}},
		"more behind":      {notify.Trace{Parent: aTraceParent + "-00"}, notify.Trace{}},
		"state with break": {notify.Trace{Parent: aTraceParent, State: "a\r\nb"}, notify.Trace{Parent: aTraceParent}},
		"huge state":       {notify.Trace{Parent: aTraceParent, State: strings.Repeat("a", 513)}, notify.Trace{Parent: aTraceParent}},
	} {
		t.Run(name, func(t *testing.T) {
			event := examples()["overlap"]
			event.Trace = tc.given
			b, err := json.Marshal(event)
			if err != nil {
				t.Fatal(err)
			}
			var back notify.Event
			if err := back.UnmarshalJSON(b); err != nil {
				t.Fatal(err)
			}
			if back.Trace != tc.want {
				t.Errorf("came back as %+v, want %+v", back.Trace, tc.want)
			}
			if has := bytes.Contains(b, []byte(`"traceparent"`)); has != (tc.want != notify.Trace{}) {
				t.Errorf("written: %s", b)
			}
		})
	}
}
