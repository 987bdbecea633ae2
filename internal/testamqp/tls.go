package testamqp

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"
)

// OverTLS puts TLS before the broker, and returns the URL through it and the
// certificate of its authority.
func OverTLS(t testing.TB, broker string) (through string, authority []byte) {
	t.Helper()
	u, err := url.Parse(broker)
	if err != nil {
		t.Fatal("the broker's URL is none")
	}
	behind := u.Host
	certificate, authority := selfSigned(t)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var links sync.WaitGroup
	links.Go(func() {
		for {
			front, err := listener.Accept()
			if err != nil {
				return
			}
			links.Go(func() { pass(ctx, front, behind) })
		}
	})
	t.Cleanup(func() {
		cancel()
		listener.Close()
		links.Wait()
	})
	u.Scheme, u.Host = "amqps", listener.Addr().String()
	return u.String(), authority
}

// pass carries bytes both ways until one end has enough, or ctx ends.
func pass(ctx context.Context, front net.Conn, behind string) {
	defer front.Close()
	back, err := new(net.Dialer).DialContext(ctx, "tcp", behind)
	if err != nil {
		return
	}
	defer back.Close()
	end := func() {
		front.Close()
		back.Close()
	}
	stop := context.AfterFunc(ctx, end)
	defer stop()
	var ways sync.WaitGroup
	ways.Go(func() { _, _ = io.Copy(back, front); end() })
	ways.Go(func() { _, _ = io.Copy(front, back); end() })
	ways.Wait()
}

func selfSigned(t testing.TB) (tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "belay test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:        true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
}
