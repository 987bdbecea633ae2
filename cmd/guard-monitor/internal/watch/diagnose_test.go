package watch_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/internal/teststack"
)

// TestDiagnose: clusters, single servers and Sentinels, sound and with a mistake.
func TestDiagnose(t *testing.T) {
	want := func(target watch.Target, want ...string) {
		t.Helper()
		var got []string
		for _, f := range watch.Diagnose(t.Context(), target) {
			got = append(got, fmt.Sprint(f.Severity, " ", f.Check, " ", f.Subject))
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%v: found %v, want %v", target.Addrs, got, want)
		}
	}
	const dead = "127.0.0.1:1"
	cluster := teststack.Redis(t)
	want(watch.Target{Addrs: cluster[:1]})
	want(watch.Target{Addrs: []string{dead, cluster[0]}})

	master, replica := replicated(t)
	pair := []string{master.addr, replica.addr}
	want(watch.Target{Addrs: pair})
	want(watch.Target{Addrs: []string{master.addr, dead}}, "error redis-server "+dead)
	must := func(args ...any) {
		t.Helper()
		if err := on(t, master.addr, args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	must("ACL", "SETUSER", "blind", "on", ">secret", "+time")
	want(watch.Target{Addrs: pair[:1], Username: "blind", Password: "secret"}, "error redis-rights "+master.addr)
	want(watch.Target{Addrs: pair[:1], Username: "blind", Password: "wrong"}, "error redis-server "+master.addr)

	conf := filepath.Join(t.TempDir(), "sentinel.conf")
	if err := writeFile(conf, "sentinel monitor main 127.0.0.1 "+master.port+" 1\n"); err != nil {
		t.Fatal(err)
	}
	sentinel := startServer(t, conf, "--sentinel")
	under := watch.Target{Addrs: []string{sentinel.addr}, Master: "main"}
	want(under)
	must("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	want(under, "error redis-eviction the master main")
	want(watch.Target{Addrs: []string{sentinel.addr, dead}, Master: "main"}, "error redis-server Sentinel "+dead, "error redis-eviction the master main")
	want(watch.Target{Addrs: under.Addrs, Master: "other"}, "error redis-server Sentinel "+sentinel.addr)
}
