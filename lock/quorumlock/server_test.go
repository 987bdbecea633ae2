package quorumlock_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
)

// startServers starts five, which save nothing and end with the test.
func startServers(tb testing.TB) (servers []*teststack.RedisServer) {
	tb.Helper()
	for range 5 {
		servers = append(servers, teststack.StartRedis(tb, teststack.Volatile))
	}
	return servers
}

func addrs(servers []*teststack.RedisServer) (all []string) {
	for _, s := range servers {
		all = append(all, s.Addr)
	}
	return all
}

// up waits until the server says that it has been up for so long.
func up(t *testing.T, s *teststack.RedisServer, d time.Duration) {
	t.Helper()
	testwait.Until(t, "the server has been up for long enough", func() bool {
		var seconds int64
		info, _ := s.Do("info", "server").Text()
		_, text, _ := strings.Cut(info, "uptime_in_seconds:")
		if _, err := fmt.Sscan(text, &seconds); err != nil {
			t.Fatalf("%v in %q", err, info)
		}
		return time.Duration(seconds)*time.Second > d
	})
}
