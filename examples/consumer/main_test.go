package main

import (
	"fmt"
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
		var delivered int
		_, said, _ := strings.Cut(out.String(), ": ")
		_, err := fmt.Sscanf(said, "200 payments of 100 cents delivered %d times: 20000 cents booked", &delivered)
		if err != nil || delivered < 267 { // a third of them at least twice
			t.Errorf("it said:\n%s", out.String())
		}
	})
}
