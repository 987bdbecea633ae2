package main

import (
	"os"
	"strings"
	"testing"
)

// It needs no servers, and uses those that the environment names if ON_SERVERS is set.
func TestFlashSale(t *testing.T) {
	if os.Getenv("ON_SERVERS") == "" {
		for _, server := range []string{"BELAY_REDIS_ADDRS", "BELAY_MYSQL_DSN", "BELAY_AMQP_URL"} {
			t.Setenv(server, "")
		}
	}
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Error(err)
	}
	if !strings.Contains(out.String(), "20 sold, 0 left") || !strings.Contains(out.String(), "    0  other") {
		t.Errorf("it said:\n%s", out.String())
	}
}
