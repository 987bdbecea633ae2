// Package teststack hands tests their part of the servers that scripts/stack
// runs: the Redis Cluster, a database and a RabbitMQ virtual host of their own.
//
// The servers are found through the variables that scripts/stack env prints.
// Without them a test is skipped, and with BELAY_REQUIRE_STACK=1 it fails. The
// extra servers (scripts/stack up --mysql and so on) are required only of tests
// that run for their sake: BELAY_REQUIRE_STACK=all.
// Only tests import this package.
package teststack

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// limit bounds each call to a server.
const limit = 15 * time.Second

// run identifies this run of a test binary.
var run = randomName()

// Redis returns the addresses (host:port) of all nodes of the Redis Cluster.
// The cluster is shared: use keys made by [Key], and leave its nodes alone.
func Redis(tb testing.TB) []string {
	tb.Helper()
	return strings.Split(setting(tb, "BELAY_REDIS_ADDRS"), ",")
}

// Key returns a lock key, or a prefix of keys, that contains name and that no
// other test, nor another run of this one, uses.
func Key(tb testing.TB, name string) string {
	tb.Helper()
	return fmt.Sprintf("test-%s-%s:%s", run, randomName()[:6], name)
}

// Program returns the path of a program that make test installs from the Debian
// package. Without it the test is skipped, or fails where the stack is required.
func Program(tb testing.TB, name, pkg string) string {
	tb.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(tb, "%s is not installed: apt-get install %s", name, pkg)
	}
	return path
}

// Missing skips a test that lacks what the text says, or fails it where the stack is
// required.
func Missing(tb testing.TB, format string, args ...any) {
	tb.Helper()
	missing(tb, required(), format, args...)
}

func missing(tb testing.TB, required bool, format string, args ...any) {
	tb.Helper()
	if required {
		tb.Fatalf(format, args...)
	}
	tb.Skipf(format, args...)
}

func required() bool {
	require := os.Getenv("BELAY_REQUIRE_STACK")
	return require == "1" || require == "all"
}

// setting returns the value of a variable that scripts/stack env sets.
func setting(tb testing.TB, name string) string {
	tb.Helper()
	return value(tb, name, "scripts/stack up", required())
}

// extra is setting for a server that is up only on demand.
func extra(tb testing.TB, name, server string) string {
	tb.Helper()
	return value(tb, name, "scripts/stack up --"+server, os.Getenv("BELAY_REQUIRE_STACK") == "all")
}

func value(tb testing.TB, name, up string, required bool) string {
	tb.Helper()
	value := os.Getenv(name)
	if value == "" {
		missing(tb, required, `%s is not set: start the servers with "%s", then: eval "$(scripts/stack env)"`, name, up)
	}
	return value
}

// randomName returns 12 random lower-case letters and digits.
func randomName() string {
	return strings.ToLower(rand.Text()[:12])
}
