package main_test

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/teststack"
)

// TestDoctor: its exit code is 1 if there is an error, and nothing is printed of a
// password.
func TestDoctor(t *testing.T) {
	broker, redis := teststack.AMQP(t), teststack.Redis(t)
	file := func(lines string) []string {
		return []string{"doctor", "-amqp-url", broker, "-config", settings(t, "redis:\n  - {name: main, nodes: ["+redis[0]+"]}\n"+lines)}
	}
	want := func(code int, args []string, says ...string) {
		t.Helper()
		p := start(t, nil, args...)
		if got := p.wait(); got != code {
			t.Errorf("exit code %d, want %d", got, code)
		}
		out := p.stdout.String()
		for _, text := range says {
			if !strings.Contains(out, text) {
				t.Errorf("it says %s, want %q", out, text)
			}
		}
		if strings.Contains(out+p.stderr.String(), password) {
			t.Error("the password is shown")
		}
	}
	want(0, file(""), "warning events-queue: RabbitMQ: ")
	want(0, []string{"topology", "-amqp-url", broker})
	want(0, file(""), "nothing is wrong\n")
	for left, severity := range map[time.Duration]string{time.Hour: "warning", -time.Hour: "error"} {
		cert, key := certificate(t, time.Now().Add(left))
		code := map[string]int{"error": 1}[severity]
		want(code, file("web: {tls_cert_file: "+cert+", tls_key_file: "+key+"}\n"), severity+" monitor-tls: web.tls_cert_file: the certificate ends at ")
	}
	want(1, []string{"doctor", "-amqp-url", deadURL, "-config", settings(t, `
db: missing/monitor.db
redis:
  - {name: main, nodes: [127.0.0.1:1], password: hunter2}
web: {tls_cert_file: missing.pem, tls_key_file: missing.pem}
`)}, "error events-broker: RabbitMQ: ", "error monitor-db: db: ", "error monitor-tls: web.tls_cert_file: ", "error redis-server: 127.0.0.1:1: ")
}

// certificate writes one that ends at a time, and its key.
func certificate(t *testing.T, end time.Time) (certFile, keyFile string) {
	t.Helper()
	public, secret, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: end.Add(-24 * time.Hour), NotAfter: end}
	cert, err := x509.CreateCertificate(nil, template, template, public, secret)
	key, err2 := x509.MarshalPKCS8PrivateKey(secret)
	certFile, keyFile = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	err = errors.Join(err, err2,
		os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o600),
		os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	return certFile, keyFile
}
