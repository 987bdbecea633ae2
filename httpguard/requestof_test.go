package httpguard_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/belaygo/belay/httpguard"
	"github.com/belaygo/belay/once"
)

// TestRequestOf: a repeat is the same request, and another body has another Print.
func TestRequestOf(t *testing.T) {
	of := func(key, body string) (once.Request, error) {
		r := httptest.NewRequest(http.MethodPost, "/pay", strings.NewReader(body))
		if key != "" {
			r.Header.Set("Idempotency-Key", key)
		}
		return httpguard.RequestOf(r, "pay", "ann", []byte(body))
	}
	first, err := of("k", "5")
	repeat, again := of("k", "5")
	other, third := of("k", "6")
	if err != nil || again != nil || third != nil {
		t.Fatal(err, again, third)
	}
	if first.Key() != repeat.Key() || first.Print != repeat.Print || first.Print == (once.Print{}) || first.Operation != "pay" {
		t.Errorf("%+v and %+v", first, repeat)
	}
	if other.Key() != first.Key() || other.Print == first.Print {
		t.Errorf("another body: %+v", other)
	}
	_, err = of("", "5")
	if got := httpguard.Status(err); err == nil || got != http.StatusBadRequest {
		t.Errorf("without a key: %v, %d", err, got)
	}
}
