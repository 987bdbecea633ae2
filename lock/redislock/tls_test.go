package redislock_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock"
)

// TestTLS: a server that asks for certificates gets the one that the URL names, and has to
// show one of the authority that it names.
func TestTLS(t *testing.T) {
	a := newAuthority(t)
	a.issue("server")
	a.issue("client")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	l.Close()
	teststack.StartRedis(t, fmt.Sprintf("%stls-port %s\ntls-ca-cert-file %s\ntls-cert-file %s\ntls-key-file %s\ntls-auth-clients yes\n",
		teststack.Volatile, port, a.file("ca.pem"), a.file("server.pem"), a.file("server.key")))

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
		_, err := openURL(t, "rediss://"+addr+"?"+some.Encode()).Acquire(t.Context(), lock.Request{Key: "k", Owner: "me:1"}, ttl)
		if err == nil {
			t.Errorf("a lock without %s", missing)
		}
	}
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

func (a *authority) issue(name string) {
	a.sign(name, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
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
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
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
