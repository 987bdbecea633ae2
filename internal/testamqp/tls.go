package testamqp

import (
	"crypto/tls"
	"encoding/pem"
	"net/http/httptest"
	"strings"
	"testing"
)

// OverTLS puts TLS before the broker, and returns the URL through it and the
// certificate of its authority.
func OverTLS(t testing.TB, broker string) (through string, authority []byte) {
	t.Helper()
	server := httptest.NewTLSServer(nil) // it has a certificate for 127.0.0.1
	server.Close()
	_, through = newProxy(t, broker, &tls.Config{Certificates: server.TLS.Certificates, MinVersion: tls.VersionTLS12})
	authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return strings.Replace(through, "amqp:", "amqps:", 1), authority
}
