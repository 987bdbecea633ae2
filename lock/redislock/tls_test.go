package redislock_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
)

// TestTLS: a server that asks for certificates gets the one that the URL names, and has to
// show one of the authority that it names.
func TestTLS(t *testing.T) {
	a := newAuthority(t)
	a.issue("server")
	a.issue("client")
	_, addr := a.startRedis()
	files := url.Values{"cacertfile": {a.file("ca.pem")}, "certfile": {a.file("client.pem")}, "keyfile": {a.file("client.key")}}
	if place := handOver(t, openURL(t, "rediss://"+addr+"?"+files.Encode())); place.Node != addr {
		t.Errorf("granted at %+v", place)
	}
	for _, missing := range []string{"cacertfile", "certfile"} {
		some := url.Values{"cacertfile": files["cacertfile"], "certfile": files["certfile"], "keyfile": files["keyfile"]}
		some.Del(missing)
		if missing == "certfile" {
			some.Del("keyfile")
		}
		_, err := openURL(t, "rediss://"+addr+"?"+some.Encode()).Acquire(t.Context(), lockengine.Request{Key: "k", Owner: "me:1"}, ttl)
		if err == nil {
			t.Errorf("a lock without %s", missing)
		}
	}
}

// TestTLSIsRefused: no request was executed if one end does not accept the certificate of the other.
// The error says which certificate that is, however often it is tried.
func TestTLSIsRefused(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	a.issue("server")
	a.issue("client")
	a.issueUntil("old", time.Now().Add(-time.Minute))
	_, addr := a.startRedis()
	for name, tt := range map[string]struct{ authorities, client, says string }{
		"the client's has expired":      {a.file("ca.pem"), a.file("old"), "expired certificate"},
		"the client has none":           {a.file("ca.pem"), "", "certificate required"},
		"the server's authority is new": {other.file("ca.pem"), a.file("client"), "certificate signed by unknown authority"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := openURL(t, urlOfTLS(addr, tt.authorities, tt.client))
			times := 0
			testwait.Until(t, "it is refused ten times", func() bool { // or its connection is reset before it can say why
				err := e.Renew(t.Context(), []lockengine.Request{hold}, ttl)[0]
				if err != nil && strings.Contains(err.Error(), tt.says) {
					times++
					wantIs(t, err, lockengine.ErrNotSent)
				}
				return times == 10 || t.Failed()
			})
		})
	}
}

// TestCertificateExpires: the certificate of a server expires while it runs. Requests on connections
// that are open go on. Doctor reports it. When the server has another one, all is well without a
// restart.
func TestCertificateExpires(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	a.issue("server")
	a.issue("client")
	a.issueUntil("old", time.Now().Add(-time.Minute))
	s, addr := a.startRedis()
	e := openURL(t, urlOfTLS(addr, a.file("ca.pem"), a.file("client")))
	acquire(t, e, hold)
	shows := func(name string) {
		s.Must("config", "set", "tls-cert-file", a.file(name+".pem"), "tls-key-file", a.file(name+".key"))
	}
	shows("old")
	if err := e.Renew(t.Context(), []lockengine.Request{hold}, ttl)[0]; err != nil {
		t.Errorf("Renew on a connection that is open: %v", err)
	}
	wantFindings(t, e, map[string]string{"error redis-server": "certificate has expired"})
	s.Must("client", "kill", "type", "normal", "skipme", "yes")
	testwait.Until(t, "the connections are gone", func() bool {
		_, err := e.Acquire(t.Context(), lockengine.Request{Key: "free", Owner: "me:2"}, ttl)
		return err != nil && errors.Is(err, lockengine.ErrNotSent) && strings.Contains(err.Error(), "certificate has expired")
	})
	wantUnclear(t, e.Ping(t.Context()), "certificate has expired")
	waits := make(chan error, 1)
	l := newLocker(t, e, lock.Config{})
	go func() {
		_, err := l.Acquire(t.Context(), "waited for")
		waits <- err
	}()
	shows("server")
	if err := <-waits; err != nil {
		t.Errorf("a caller that waits: %v", err)
	}
	if err := e.Renew(t.Context(), []lockengine.Request{hold}, ttl)[0]; err != nil {
		t.Errorf("Renew: %v", err)
	}
}

// startRedis starts a server that asks clients for certificates. It returns the address for TLS, too.
func (a *authority) startRedis() (s *teststack.RedisServer, addr string) {
	a.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		a.t.Fatal(err)
	}
	addr = l.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	l.Close()
	return teststack.StartRedis(a.t, fmt.Sprintf("%stls-port %s\ntls-ca-cert-file %s\ntls-cert-file %s\ntls-key-file %s\ntls-auth-clients yes\n",
		teststack.Volatile, port, a.file("ca.pem"), a.file("server.pem"), a.file("server.key"))), addr
}

// urlOfTLS is the URL of a client that trusts authorities, and has a certificate unless client is empty.
func urlOfTLS(addr, authorities, client string) string {
	files := url.Values{"cacertfile": {authorities}}
	if client != "" {
		files.Set("certfile", client+".pem")
		files.Set("keyfile", client+".key")
	}
	return "rediss://" + addr + "?" + files.Encode()
}

// An authority issues certificates for 127.0.0.1.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.cert, a.key = a.sign("ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

func (a *authority) issue(name string) { a.issueUntil(name, time.Now().Add(time.Hour)) }

func (a *authority) issueUntil(name string, until time.Time) {
	a.sign(name, &x509.Certificate{NotAfter: until, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}})
}

// sign writes a certificate and its key. The first one signs itself.
func (a *authority) sign(name string, c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber, c.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}
	c.NotBefore = time.Now().Add(-time.Hour)
	if c.NotAfter.IsZero() {
		c.NotAfter = time.Now().Add(time.Hour)
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(name+".pem", "CERTIFICATE", der)
	a.write(name+".key", "PRIVATE KEY", secret)
	return c, key
}

func (a *authority) write(name, kind string, bytes []byte) {
	a.t.Helper()
	if err := os.WriteFile(a.file(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600); err != nil {
		a.t.Fatal(err)
	}
}
