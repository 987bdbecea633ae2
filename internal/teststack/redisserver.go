package teststack

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/testwait"
)

// Volatile are settings of a RedisServer that saves nothing, and whose replicas follow at once.
const Volatile = "save \"\"\nappendonly no\nrepl-diskless-sync yes\nrepl-diskless-sync-delay 0\n"

// A RedisServer is a redis-server of one test's own, outside any cluster, or a Sentinel.
type RedisServer struct {
	Addr string
	Port string
	Dir  string   // what it saves, and its configuration
	Env  []string // beside that of the test, from the next Start on
	TB   testing.TB

	args []string
	cmd  *exec.Cmd
}

// StartRedis starts a redis-server, which ends with the test. config are lines of its
// configuration file, like Volatile; args come after that, like "--sentinel".
func StartRedis(tb testing.TB, config string, args ...string) *RedisServer {
	tb.Helper()
	Redis(tb) // where there is a cluster, there is redis-server
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s := &RedisServer{Addr: l.Addr().String(), Dir: tb.TempDir(), TB: tb}
	_, s.Port, _ = net.SplitHostPort(s.Addr)
	l.Close()
	file := filepath.Join(s.Dir, "redis.conf")
	config = fmt.Sprintf("bind 127.0.0.1\nport %s\ndir %s\n%s", s.Port, s.Dir, config)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		tb.Fatal(err)
	}
	s.args = append([]string{file}, args...)
	s.Start()
	tb.Cleanup(s.Kill)
	return s
}

// Start starts the server, as after Kill, and waits until it answers.
func (s *RedisServer) Start() {
	s.TB.Helper()
	s.cmd = exec.Command("redis-server", s.args...)
	s.cmd.Env = append(os.Environ(), s.Env...)
	if err := s.cmd.Start(); err != nil {
		s.TB.Fatal(err)
	}
	testwait.Until(s.TB, "redis-server answers", func() bool { return s.Do("PING").Err() == nil })
}

// Kill ends the server at once.
func (s *RedisServer) Kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// Pause has the server stand still, with its connections open, until Resume.
func (s *RedisServer) Pause() { _ = s.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume has the server go on.
func (s *RedisServer) Resume() { _ = s.cmd.Process.Signal(syscall.SIGCONT) }

// SetClock sets the clock of the server, whose Env has that, and returns when it has that time.
func (s *RedisServer) SetClock(c *Clock, off time.Duration) {
	s.TB.Helper()
	c.Set(off)
	client := redis.NewClient(&redis.Options{Addr: s.Addr})
	defer client.Close()
	testwait.Until(s.TB, "its clock is set", func() bool {
		now, err := client.Time(s.TB.Context()).Result()
		return err == nil && now.Sub(time.Now().Add(off)).Abs() < time.Minute
	})
}

// Do sends one command, on a connection of its own.
func (s *RedisServer) Do(args ...any) *redis.Cmd {
	client := redis.NewClient(&redis.Options{Addr: s.Addr})
	defer client.Close()
	return client.Do(s.TB.Context(), args...)
}

// Must is Do, and fails the test if the server refuses.
func (s *RedisServer) Must(args ...any) {
	s.TB.Helper()
	if err := s.Do(args...).Err(); err != nil {
		s.TB.Fatalf("%v: %v", args, err)
	}
}
