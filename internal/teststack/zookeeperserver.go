package teststack

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/belaygo/belay/internal/testwait"
)

// A ZooKeeperServer is a ZooKeeper of one test's own, which is no member of an ensemble.
type ZooKeeperServer struct {
	Addr string
	TB   testing.TB

	dir string
	cmd *exec.Cmd
}

// StartZooKeeperServer starts a server, which ends with the test. It skips or fails where
// [ZooKeeper] does.
func StartZooKeeperServer(tb testing.TB) *ZooKeeperServer {
	tb.Helper()
	ZooKeeper(tb)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s := &ZooKeeperServer{Addr: l.Addr().String(), TB: tb, dir: tb.TempDir()}
	_, port, _ := net.SplitHostPort(s.Addr)
	l.Close()
	config := fmt.Sprintf("tickTime=500\nmaxSessionTimeout=60000\ndataDir=%s\nclientPort=%s\nclientPortAddress=127.0.0.1\n"+
		"admin.enableServer=false\n4lw.commands.whitelist=srvr\n", s.data(), port)
	if err := os.WriteFile(s.config(), []byte(config), 0o600); err != nil {
		tb.Fatal(err)
	}
	s.Start()
	tb.Cleanup(s.Kill)
	return s
}

func (s *ZooKeeperServer) config() string { return filepath.Join(s.dir, "zoo.cfg") }
func (s *ZooKeeperServer) data() string   { return filepath.Join(s.dir, "data") }
func (s *ZooKeeperServer) backup() string { return filepath.Join(s.dir, "backup") }

// Start starts the server, as after Kill, and waits until it answers.
func (s *ZooKeeperServer) Start() {
	s.TB.Helper()
	const jars = "/usr/share/java/"
	s.cmd = exec.Command("java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", jars+"zookeeper.jar:"+jars+"slf4j-simple.jar",
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", s.config())
	if err := s.cmd.Start(); err != nil {
		s.TB.Fatal(err)
	}
	testwait.Until(s.TB, "ZooKeeper answers", func() bool { return modeOf(s.Addr) == "standalone" })
}

// Kill ends the server at once.
func (s *ZooKeeperServer) Kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// Backup copies the data of the server, which may be running.
func (s *ZooKeeperServer) Backup() {
	s.TB.Helper()
	if err := os.CopyFS(s.backup(), os.DirFS(s.data())); err != nil {
		s.TB.Fatal(err)
	}
}

// Restore replaces the data by the backup.
func (s *ZooKeeperServer) Restore() {
	s.TB.Helper()
	if err := os.RemoveAll(s.data()); err != nil {
		s.TB.Fatal(err)
	}
	if err := os.Rename(s.backup(), s.data()); err != nil {
		s.TB.Fatal(err)
	}
}
