package main

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/belaygo/belay/internal/teststack"
)

// The story on real servers, in which a Redis master is killed: one of a cluster
// of this test's own.
func TestStack(t *testing.T) {
	t.Parallel()
	dsn, amqp := teststack.MySQL(t), teststack.AMQP(t)
	cluster := teststack.StartCluster(t, "demo")
	monitor := filepath.Join(t.TempDir(), "guard-monitor")
	if out, err := exec.Command("go", "build", "-o", monitor, "github.com/belaygo/belay/cmd/guard-monitor").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	cmd := demoCommand(t, "-stack", "-control", "../../../../scripts/stack", "-monitor", monitor)
	cmd.Env = append(cmd.Env, cluster.Env()...)
	cmd.Env = append(cmd.Env, "BELAY_REDIS_ADDRS="+strings.Join(cluster.Addrs, ","), "BELAY_MYSQL_DSN="+dsn, "BELAY_AMQP_URL="+amqp)

	stdout, stderr, status := runDemo(t, cmd)
	if status != 0 || stderr != "" {
		t.Errorf("exit status %d, %q on standard error", status, stderr)
	}
	wantStory(t, stdout, slices.Concat(beginning, failureOnStack, ending))
	if status := cluster.Stack(t, "status"); !strings.Contains(status, " down") {
		t.Errorf("no node of the cluster is down:\n%s", status)
	}
}

func TestStackIsNotThere(t *testing.T) {
	t.Setenv("BELAY_REDIS_ADDRS", "")
	_, stderr, status := demo(t, "-stack")
	if status != 1 || !strings.Contains(stderr, "scripts/stack up") {
		t.Errorf("exit status %d, %q on standard error", status, stderr)
	}
}
