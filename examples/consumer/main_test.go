package main

import (
	"strings"
	"testing"

	"github.com/belaygo/belay/examples/internal/placetest"
)

func TestConsumer(t *testing.T) {
	placetest.Each(t, func(t *testing.T) {
		var out strings.Builder
		if err := run(t.Context(), &out); err != nil {
			t.Error(err)
		}
		if !strings.Contains(out.String(), "200 payments of 100 cents delivered 267 times: 20000 cents booked") {
			t.Errorf("it said:\n%s", out.String())
		}
	})
}
