package main

import (
	"strings"
	"testing"

	"github.com/belaygo/belay/examples/internal/placetest"
)

func TestFlashSale(t *testing.T) {
	placetest.Each(t, func(t *testing.T) {
		var out strings.Builder
		if err := run(t.Context(), &out); err != nil {
			t.Error(err)
		}
		if !strings.Contains(out.String(), "20 sold, 0 left") || !strings.Contains(out.String(), "    0  other") {
			t.Errorf("it said:\n%s", out.String())
		}
	})
}
