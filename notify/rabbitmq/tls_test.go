package rabbitmq_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belaygo/belay/internal/rabbit"
	"github.com/belaygo/belay/internal/testamqp"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/notify/rabbitmq"
)

// Events go to the broker through TLS.
func TestTLS(t *testing.T) {
	t.Parallel()
	broker := teststack.AMQP(t)
	declare(t, broker)
	through, authority := testamqp.OverTLS(t, broker)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		t.Fatal("no certificate")
	}
	trust := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	p := newPublisher(t, through, rabbitmq.Config{TLS: trust})
	publish(t, p, 1)

	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, authority, 0o600); err != nil {
		t.Fatal(err)
	}
	byURL := newPublisher(t, through+"?cacertfile="+url.QueryEscape(file), rabbitmq.Config{})
	publish(t, byURL, 2)
	if n := testamqp.Depth(t, broker, rabbit.Queue); n < 2 {
		t.Errorf("%d messages, want 2", n)
	}
}

// A broker that cannot prove who it is gets nothing, neither events nor the
// password.
func TestTLSOfAStranger(t *testing.T) {
	broker := teststack.AMQP(t)
	declare(t, broker)
	through, authority := testamqp.OverTLS(t, broker)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	for name, trust := range map[string]*tls.Config{
		"unknown authority": nil,
		"another name":      {RootCAs: roots, ServerName: "other.example", MinVersion: tls.VersionTLS12},
	} {
		p := newPublisher(t, through, rabbitmq.Config{TLS: trust})
		if err := p.Publish(t.Context(), event(1)); err == nil || !strings.Contains(err.Error(), "x509") {
			t.Errorf("%s: err = %v, want one about the certificate", name, err)
		}
	}
	if n := testamqp.Depth(t, broker, rabbit.Queue); n != 0 {
		t.Errorf("%d messages, want none", n)
	}
}
