package asciijson_test

import (
	"encoding/json"
	"testing"

	"github.com/belaygo/belay/internal/asciijson"
)

func TestEscape(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "plain", "中国", "🧗", "\x1b\x7f\u2028", "é\"\\"} {
		body, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		escaped := asciijson.Escape(body)
		for _, b := range escaped {
			if b > 0x7f {
				t.Errorf("%q became %s, which is not ASCII", text, escaped)
			}
		}
		var back string
		if err := json.Unmarshal(escaped, &back); err != nil || back != text {
			t.Errorf("%q became %q, error %v", text, back, err)
		}
	}
}
