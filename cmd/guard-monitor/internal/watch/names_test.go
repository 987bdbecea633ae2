package watch_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/redislock"
	"github.com/belaygo/belay/notify"
)

// TestAddressesOfACluster: nodes are watched, and found, under the addresses that the services
// have for them.
func TestAddressesOfACluster(t *testing.T) {
	const names = "cluster-announce-hostname localhost\ncluster-preferred-endpoint-type hostname\n"
	for name, tt := range map[string]struct{ config, ip, host string }{
		"names":            {names, "127.0.0.1", "localhost"},
		"names beside IPs": {"cluster-announce-hostname nowhere.invalid\n", "127.0.0.1", "127.0.0.1"},
		"IPv6":             {"bind 127.0.0.1 ::1\ncluster-announce-ip ::1\n", "::1", "::1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var addrs []string
			for _, s := range newCluster(t, tt.ip, func() string { return tt.config }) {
				addrs = append(addrs, net.JoinHostPort(tt.host, s.Port))
			}
			wantWatched(t, addrs, "redis+cluster://"+addrs[0], watch.Target{Name: "main", Addrs: addrs[:1]})
		})
	}
}

// TestCertificatesForNames: the certificates of the nodes have their names, and no IPs.
func TestCertificatesForNames(t *testing.T) {
	cert, key, pool := newCertificate(t, "localhost")
	var addrs []string
	newCluster(t, "127.0.0.1", func() string {
		port := freePort(t)
		addrs = append(addrs, "localhost:"+port)
		return fmt.Sprintf("cluster-announce-hostname localhost\ncluster-preferred-endpoint-type hostname\n"+
			"tls-cluster yes\ntls-port %s\ntls-cert-file %s\ntls-key-file %s\ntls-ca-cert-file %[2]s\ntls-auth-clients no\n", port, cert, key)
	})
	wantWatched(t, addrs, "rediss+cluster://"+addrs[0]+"?cacertfile="+cert,
		watch.Target{Name: "main", Addrs: addrs[:1], TLS: &tls.Config{RootCAs: pool}})
}

// newCluster starts two masters, and a replica of the first. config has more of their settings.
func newCluster(t *testing.T, ip string, config func() string) []*teststack.RedisServer {
	t.Helper()
	var nodes []*teststack.RedisServer
	for range 3 {
		bus := freePort(t)
		s := teststack.StartRedis(t, teststack.Volatile+"cluster-enabled yes\ncluster-port "+bus+"\n"+config())
		nodes = append(nodes, s)
		if len(nodes) > 1 {
			nodes[0].Must("cluster", "meet", ip, s.Port, bus)
		}
	}
	nodes[0].Must("cluster", "addslotsrange", 0, 8191)
	nodes[1].Must("cluster", "addslotsrange", 8192, 16383)
	master := nodes[0].Do("cluster", "myid").Val()
	testwait.Until(t, "the replica knows its master", func() bool { return nodes[2].Do("cluster", "replicate", master).Err() == nil })
	testwait.Until(t, "the cluster is up", func() bool {
		for _, s := range nodes {
			if !strings.Contains(s.Do("cluster", "info").String(), "cluster_state:ok") {
				return false
			}
		}
		return true
	})
	return nodes
}

// wantWatched expects the nodes under their addresses, the last one as a replica of the first, and
// the locks of a service at them.
func wantWatched(t *testing.T, addrs []string, url string, target watch.Target) {
	t.Helper()
	w, r := start(t, target)
	testwait.Until(t, "all nodes are known", func() bool {
		c := w.Clusters()[0]
		up := 0
		for _, n := range c.Nodes {
			if n.Up && n.Shard != "" {
				up++
			}
		}
		return up == len(addrs) && len(c.Nodes) == up && len(c.Shards) == 2 && c.Shards[0].Master == addrs[0] &&
			c.Shards[1].Master == addrs[1] && len(c.Shards[0].Replicas) == 1 && c.Shards[0].Replicas[0] == addrs[2]
	})
	for _, place := range granted(t, url) {
		if at, ok := w.Locate(place); !ok || !watch.InShard(at.Shard, place.Slot) {
			t.Errorf("Locate(%+v) = %+v, %v", place, at, ok)
		}
	}
	for _, e := range r.all() {
		if (e.Kind == watch.Down || e.Kind == watch.Up) && !slices.Contains(addrs, e.Node) {
			t.Errorf("a node under another address: %+v", e)
		}
	}
}

// granted returns where some locks are granted.
func granted(t *testing.T, url string) (places []notify.Place) {
	t.Helper()
	opts, err := redislock.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	e, err := redislock.Open(opts, redislock.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(t.Context())
	for i := range 5 {
		g, err := e.Acquire(t.Context(), lockengine.Request{Key: fmt.Sprint("k", i), Owner: "me:1"}, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		places = append(places, notify.Place{Node: g.Node, Slot: g.Slot})
	}
	return places
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// newCertificate writes a certificate for a name that signs itself.
func newCertificate(t *testing.T, name string) (certFile, keyFile string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), DNSNames: []string{name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, text := range map[string][]byte{certFile: cert, keyFile: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})} {
		if err := writeFile(file, string(text)); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile, pool
}
