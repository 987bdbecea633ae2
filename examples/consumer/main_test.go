package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/belaygo/belay/internal/teststack"
)

func TestConsumer(t *testing.T) {
	t.Run("embedded", func(t *testing.T) {
		for _, server := range []string{"BELAY_REDIS_ADDRS", "BELAY_MYSQL_DSN", "BELAY_AMQP_URL"} {
			t.Setenv(server, "")
		}
		testConsumer(t)
	})
	t.Run("stack", func(t *testing.T) {
		teststack.Redis(t)
		t.Setenv("BELAY_MYSQL_DSN", teststack.MySQL(t))
		t.Setenv("BELAY_AMQP_URL", teststack.AMQP(t))
		testConsumer(t)
	})
}

func testConsumer(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Error(err)
	}
	var delivered int
	_, err := fmt.Sscanf(out.String(), "200 payments of 100 cents delivered %d times: 20000 cents booked", &delivered)
	if err != nil || delivered < 267 { // a third of them at least twice
		t.Errorf("it said:\n%s", out.String())
	}
}
