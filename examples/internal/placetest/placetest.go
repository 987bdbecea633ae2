// Package placetest runs tests of the examples in each place. Only tests import
// it.
package placetest

import (
	"testing"

	"github.com/belaygo/belay/internal/teststack"
)

// Each runs f on the embedded default and on the servers of the stack.
func Each(t *testing.T, f func(t *testing.T)) {
	t.Run("embedded", func(t *testing.T) {
		for _, name := range []string{"BELAY_REDIS_ADDRS", "BELAY_MYSQL_DSN", "BELAY_AMQP_URL"} {
			t.Setenv(name, "")
		}
		f(t)
	})
	t.Run("stack", func(t *testing.T) {
		teststack.Redis(t)
		t.Setenv("BELAY_MYSQL_DSN", teststack.MySQL(t))
		t.Setenv("BELAY_AMQP_URL", teststack.AMQP(t))
		f(t)
	})
}
