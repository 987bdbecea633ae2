package quorumlock_test

import (
	"fmt"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
)

// A server is a redis-server of the test's own, which saves nothing.
type server struct {
	tb   testing.TB
	addr string
	dir  string
	cmd  *exec.Cmd
}

// startServers starts five, which end with the test.
func startServers(tb testing.TB) (servers []*server) {
	tb.Helper()
	teststack.Redis(tb) // where there is a cluster, there is redis-server
	for range 5 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			tb.Fatal(err)
		}
		s := &server{tb: tb, addr: l.Addr().String(), dir: tb.TempDir()}
		l.Close()
		s.start()
		tb.Cleanup(s.kill)
		servers = append(servers, s)
	}
	return servers
}

// start starts the server, as after kill, and waits until it answers. It has no lock.
func (s *server) start() {
	s.tb.Helper()
	_, port, _ := net.SplitHostPort(s.addr)
	s.cmd = exec.Command("redis-server", "--bind", "127.0.0.1", "--port", port, "--dir", s.dir, "--save", "", "--appendonly", "no")
	if err := s.cmd.Start(); err != nil {
		s.tb.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: s.addr})
	defer client.Close()
	testwait.Until(s.tb, "redis-server answers", func() bool { return client.Ping(s.tb.Context()).Err() == nil })
}

// kill ends the server at once.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

func (s *server) pause()  { _ = s.cmd.Process.Signal(syscall.SIGSTOP) }
func (s *server) resume() { _ = s.cmd.Process.Signal(syscall.SIGCONT) }

func addrs(servers []*server) (all []string) {
	for _, s := range servers {
		all = append(all, s.addr)
	}
	return all
}

// up waits until the server says that it has been up for so long.
func (s *server) up(t *testing.T, d time.Duration) {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: s.addr})
	defer client.Close()
	for {
		var seconds int64
		info := client.Info(t.Context(), "server").Val()
		_, text, _ := strings.Cut(info, "uptime_in_seconds:")
		if _, err := fmt.Sscan(text, &seconds); err != nil {
			t.Fatalf("%v in %q", err, info)
		}
		if time.Duration(seconds)*time.Second > d {
			return
		}
		<-time.After(100 * time.Millisecond)
	}
}

// size is how many keys the server has.
func (s *server) size() int64 {
	client := redis.NewClient(&redis.Options{Addr: s.addr})
	defer client.Close()
	return client.DBSize(s.tb.Context()).Val()
}
