package web

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/lograte"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
)

// LoadTLS returns the settings of a server with the certificate of two files.
// They are read again at most once a minute, so that a certificate can be
// renewed without a restart.
func LoadTLS(certFile, keyFile string) (*tls.Config, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile}
	if err := c.load(); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}, nil
}

const reloadEvery = time.Minute

type certificate struct {
	certFile, keyFile string

	mu   sync.Mutex
	cert *tls.Certificate
	at   time.Time
}

func (c *certificate) load() error {
	cert, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	c.at = time.Now()
	if err == nil {
		c.cert = &cert
	}
	return err
}

// get returns the old certificate while the new one cannot be read, as when only half
// of it is written.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.at) >= reloadEvery {
		_ = c.load() // the old one is still there
	}
	return c.cert, nil
}

// connectionLog takes what net/http logs of connections, which is whatever strangers cause.
// A handshake that fails is logged at the level debug: any port scan or TCP check does that.
type connectionLog struct {
	logger *slog.Logger
	lines  lograte.Limit
}

func (c *connectionLog) Write(line []byte) (int, error) {
	what := slog.String("error", text.Line(string(bytes.TrimSpace(line))))
	if bytes.HasPrefix(line, []byte("http: TLS handshake error")) {
		c.logger.LogAttrs(context.Background(), slog.LevelDebug, "connection failed", what)
		return len(line), nil
	}
	c.lines.Warn(context.Background(), c.logger, "connection failed", what)
	return len(line), nil
}

const (
	drainTimeout   = 5 * time.Second
	maxHeaderBytes = 16 << 10
)

// Serve answers requests on ln with h until ctx ends, then gives requests in
// progress five seconds, closes ln and returns nil. It serves https if secure is
// not nil.
func Serve(ctx context.Context, ln net.Listener, h http.Handler, secure *tls.Config, logger *slog.Logger) error {
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    maxHeaderBytes,
		TLSConfig:         secure,
		ErrorLog:          log.New(&connectionLog{logger: logger}, "", 0),
	}
	ended := make(chan error, 1)
	go func() {
		if secure != nil {
			ended <- srv.ServeTLS(ln, "", "")
			return
		}
		ended <- srv.Serve(ln)
	}()
	select {
	case err := <-ended:
		return fmt.Errorf("serve http: %w", err)
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	if srv.Shutdown(drain) != nil {
		_ = srv.Close() // a client that does not read must not keep us
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve http: %w", err)
	}
	return nil
}
