package watch_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
)

// server is a Redis server outside any cluster, or a Sentinel.
type server struct {
	t    *testing.T
	addr string
	port string
	cmd  *exec.Cmd
}

func startServer(t *testing.T, args ...string) *server {
	t.Helper()
	teststack.Redis(t) // where there is a stack, there is redis-server
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, addr: l.Addr().String(), port: strconv.Itoa(l.Addr().(*net.TCPAddr).Port)}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	s.start(args...)
	t.Cleanup(s.kill)
	return s
}

func (s *server) start(args ...string) {
	s.t.Helper()
	dir := s.t.TempDir()
	args = append(args, "--port", s.port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--repl-diskless-sync-delay", "0")
	s.cmd = exec.Command("redis-server", args...)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	testwait.Until(s.t, s.addr+" answers", func() bool { return on(s.t, s.addr, "PING").Err() == nil })
}

func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

func (s *server) follows(m *server) bool {
	role, err := on(s.t, s.addr, "ROLE").Slice()
	return err == nil && len(role) > 3 && role[0] == "slave" && fmt.Sprint(role[2]) == m.port && role[3] == "connected"
}

// replicated returns a master and its replica.
func replicated(t *testing.T) (master, replica *server) {
	t.Helper()
	master = startServer(t)
	replica = startServer(t, "--replicaof", "127.0.0.1", master.port)
	testwait.Until(t, "the replica follows", func() bool { return replica.follows(master) })
	return master, replica
}

func TestSingle(t *testing.T) {
	s := startServer(t)
	w, r := start(t, watch.Target{Name: "one", Addrs: []string{s.addr}})
	if c := w.Clusters()[0]; c.Mode != watch.Single || len(c.Nodes) != 1 || len(c.Shards) != 1 || c.Shards[0].Master != s.addr {
		t.Errorf("watched %+v", c)
	}
	if at, ok := w.Locate(notify.Place{Node: s.addr, Slot: -1}); !ok || at.Cluster != "one" || at.Shard != "" {
		t.Errorf("Locate = %+v, %v", at, ok)
	}
	if err := on(t, s.addr, "SET", "k", "v").Err(); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the key is seen", func() bool { return w.Clusters()[0].Nodes[0].Keys == 1 })
	s.kill()
	r.await(t, watch.Down, s.addr)
	s.start()
	e := r.await(t, watch.Restart, s.addr)
	if e.Numbers[watch.KeysBefore] != 1 || e.Numbers[watch.KeysAfter] != 0 || e.Numbers[watch.WasMaster] != 1 || e.Since.After(e.At) {
		t.Errorf("restart %+v, want one key before and none after", e)
	}
}

// TestPromotedByHand has a replica promoted without Sentinels.
func TestPromotedByHand(t *testing.T) {
	master, replica := replicated(t)
	_, r := start(t, watch.Target{Name: "pair", Addrs: []string{master.addr, replica.addr}})
	master.kill()
	r.await(t, watch.Down, master.addr)
	if err := on(t, replica.addr, "REPLICAOF", "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	e := r.await(t, watch.Failover, replica.addr)
	if _, known := e.Numbers[watch.LostBytes]; e.Peer != master.addr || !known {
		t.Errorf("failover %+v, want from %s, and offsets", e, master.addr)
	}
}

func TestSentinel(t *testing.T) {
	master, replica := replicated(t)
	conf := filepath.Join(t.TempDir(), "sentinel.conf")
	if err := writeFile(conf, fmt.Sprintf("sentinel monitor main 127.0.0.1 %s 1\nsentinel down-after-milliseconds main 500\nsentinel failover-timeout main 5000\n", master.port)); err != nil {
		t.Fatal(err)
	}
	sentinel := startServer(t, conf, "--sentinel")
	testwait.Until(t, "the Sentinel knows the replica", func() bool {
		list, err := on(t, sentinel.addr, "SENTINEL", "REPLICAS", "main").Slice()
		return err == nil && len(list) == 1
	})
	w, r := start(t, watch.Target{Name: "watched", Addrs: []string{"127.0.0.1:1", sentinel.addr}, Master: "main"})
	testwait.Until(t, "master and replica are known", func() bool {
		c := w.Clusters()[0]
		return c.Mode == watch.Sentinel && len(c.Nodes) == 2 && len(c.Shards) == 1 && c.Shards[0].Master == master.addr && len(c.Shards[0].Replicas) == 1
	})
	master.kill()
	if e := r.await(t, watch.Failover, replica.addr); e.Peer != master.addr {
		t.Errorf("failover %+v, want from %s", e, master.addr)
	}
	if at, ok := w.Locate(notify.Place{Node: master.addr, Slot: -1}); !ok || at.Cluster != "watched" {
		t.Errorf("the old master is forgotten: %+v, %v", at, ok)
	}
}

func writeFile(path, text string) error { return os.WriteFile(path, []byte(text), 0o600) }
