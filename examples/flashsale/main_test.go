package main

import (
	"strings"
	"testing"

	"github.com/belaygo/belay/internal/teststack"
)

func TestFlashSale(t *testing.T) {
	t.Run("embedded", func(t *testing.T) {
		for _, server := range []string{"BELAY_REDIS_ADDRS", "BELAY_MYSQL_DSN", "BELAY_AMQP_URL"} {
			t.Setenv(server, "")
		}
		testFlashSale(t)
	})
	t.Run("stack", func(t *testing.T) {
		teststack.Redis(t)
		t.Setenv("BELAY_MYSQL_DSN", teststack.MySQL(t))
		t.Setenv("BELAY_AMQP_URL", teststack.AMQP(t))
		testFlashSale(t)
	})
}

func testFlashSale(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Error(err)
	}
	if !strings.Contains(out.String(), "20 sold, 0 left") || !strings.Contains(out.String(), "    0  other") {
		t.Errorf("it said:\n%s", out.String())
	}
}
