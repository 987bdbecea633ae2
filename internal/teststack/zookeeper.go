package teststack

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// ZooKeeper returns the addresses of the three nodes of ZooKeeper. It is an extra server, as
// in [MySQL9].
func ZooKeeper(tb testing.TB) []string {
	tb.Helper()
	return strings.Split(extra(tb, "BELAY_ZOOKEEPER", "zookeeper"), ",")
}

// An Ensemble is three nodes of ZooKeeper of one test's own. Its nodes are 0, 1 and 2.
type Ensemble struct {
	*Bed

	Addrs []string
}

// StartZooKeeper brings up an ensemble, and has it stopped when the test ends. It skips or
// fails where [ZooKeeper] does: where there is one, there may be another.
func StartZooKeeper(tb testing.TB, name string) *Ensemble {
	tb.Helper()
	ZooKeeper(tb)
	e := &Ensemble{Bed: StartBed(tb, name, BedConfig{Servers: []string{"zookeeper"}, Network: true})}
	e.Addrs = strings.Split(e.settings(tb)["BELAY_ZOOKEEPER"], ",")
	return e
}

// Node runs a command of scripts/stack, such as kill, on a node.
func (e *Ensemble) Node(tb testing.TB, command string, node int) {
	tb.Helper()
	e.Stack(tb, command, fmt.Sprint("zookeeper-", node+1))
}

// Leader waits until a node is the leader, and returns it.
func (e *Ensemble) Leader(tb testing.TB) int {
	tb.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); <-time.After(50 * time.Millisecond) {
		for i, addr := range e.Addrs {
			if isLeader(addr) {
				return i
			}
		}
	}
	tb.Fatal("ZooKeeper has no leader")
	return 0
}

func isLeader(addr string) bool { return modeOf(addr) == "leader" }

// modeOf returns what a server says it is, or nothing if it does not answer.
func modeOf(addr string) string {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return ""
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	_, _ = fmt.Fprint(c, "srvr")
	for lines := bufio.NewScanner(c); lines.Scan(); {
		if mode, ok := strings.CutPrefix(lines.Text(), "Mode: "); ok {
			return mode
		}
	}
	return ""
}
