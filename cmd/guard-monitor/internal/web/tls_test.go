package web_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/security"
	"github.com/chromedp/chromedp"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/web"
)

// newCertificate writes a certificate for 127.0.0.1 that signs itself.
func newCertificate(tb testing.TB) (certFile, keyFile string, pool *x509.CertPool) {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "monitor"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		tb.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		tb.Fatal(err)
	}
	dir := tb.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return certFile, keyFile, pool
}

// secureServer serves s as guard-monitor does with a certificate.
func (s *site) secureServer(tb testing.TB) (address string, pool *x509.CertPool) {
	tb.Helper()
	certFile, keyFile, pool := newCertificate(tb)
	secure, err := web.LoadTLS(certFile, keyFile)
	if err != nil {
		tb.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	run(tb, s.Run)
	run(tb, func(ctx context.Context) error { return web.Serve(ctx, ln, s, secure, slog.New(slog.DiscardHandler)) })
	return ln.Addr().String(), pool
}

func TestTLS(t *testing.T) {
	s := newSite(t)
	addr, pool := s.secureServer(t)
	get := func(url string, c *tls.Config) (code int, err error) {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: c, DisableKeepAlives: true}}
		res, err := client.Get(url)
		if err != nil {
			return 0, err
		}
		defer res.Body.Close()
		return res.StatusCode, nil
	}
	if code, err := get("https://"+addr+"/", &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}); err != nil || code != http.StatusOK {
		t.Errorf("https: %d, %v", code, err)
	}
	if code, err := get("https://"+addr+"/", &tls.Config{MinVersion: tls.VersionTLS12}); err == nil {
		t.Errorf("a certificate that nobody signed is trusted: %d", code)
	}
	if code, err := get("https://"+addr+"/", &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}); err == nil {
		t.Errorf("TLS 1.1 is spoken: %d", code)
	}
	if code, err := get("http://"+addr+"/", nil); err == nil && code != http.StatusBadRequest {
		t.Errorf("plain http: %d", code)
	}
}

// TestConnectionsFillNoLog: a handshake that fails, as any port scan causes, is no line.
func TestConnectionsFillNoLog(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	certFile, keyFile, _ := newCertificate(t)
	secure, err := web.LoadTLS(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer // read after the server has ended
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(ctx, ln, s, secure, slog.New(slog.NewTextHandler(&out, nil))) }()
	for range 20 {
		conn, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, err = conn.Write([]byte("GET / HTTP/1.0\r\n\r\n"))
		if err != nil {
			t.Error(err)
		}
		_, _ = io.Copy(io.Discard, conn) // until the server has answered and logged
		_ = conn.Close()
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if out.Len() > 0 {
		t.Errorf("the log has\n%.500s", out.String())
	}
}

func TestLoadTLSRefuses(t *testing.T) {
	certFile, keyFile, _ := newCertificate(t)
	_, otherKey, _ := newCertificate(t)
	for _, files := range [][2]string{{certFile, otherKey}, {certFile, certFile}, {keyFile, keyFile}, {"missing.pem", keyFile}} {
		if c, err := web.LoadTLS(files[0], files[1]); err == nil || c != nil || strings.Contains(err.Error(), "PRIVATE") {
			t.Errorf("LoadTLS%v: %v", files, err)
		}
	}
}

// A browser has the page, its live connection and its forms by https.
func TestBrowserTLS(t *testing.T) {
	t.Parallel()
	s := newSite(t, withWrites, func(c *web.Config) { c.Every = 50 * time.Millisecond })
	addr, _ := s.secureServer(t)
	s.explain(t)
	b := browse(t)
	if _, err := chromedp.Call(b.ctx, security.SetIgnoreCertificateErrors, security.SetIgnoreCertificateErrorsParams{Ignore: true}); err != nil {
		t.Fatal(err)
	}
	b.run(chromedp.Navigate("https://" + addr + "/incidents/" + incidentID))
	b.until(`location.protocol === "https:" && document.getElementById("live").classList.contains("on")`)
	b.run(chromedp.SendKeys(`#actions form[action$="/ack"] input[name=by]`, "Alice"), chromedp.Click(`#actions form[action$="/ack"] button`))
	b.shows("Alice is on it")
	ev := event("secure")
	ev.Key = "order:secure"
	b.run(chromedp.Navigate("https://" + addr + "/events"))
	b.until(`document.getElementById("live").classList.contains("on") && (window.marked = 42)`)
	s.add(t, ev)
	b.shows("order:secure")
	b.until(`window.marked === 42`)
}
