package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// It needs no servers, and uses those that the environment names if ON_SERVERS is set.
func TestConsumer(t *testing.T) {
	if os.Getenv("ON_SERVERS") == "" {
		for _, server := range []string{"BELAY_REDIS_ADDRS", "BELAY_MYSQL_DSN", "BELAY_AMQP_URL"} {
			t.Setenv(server, "")
		}
	}
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
