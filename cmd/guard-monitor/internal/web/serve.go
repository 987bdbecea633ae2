package web

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// LoadTLS returns the settings of a server with the certificate of two files. Each
// connection reads them again, so that a certificate can be renewed without a restart.
// The last one counts while they cannot be read, as when only half is written.
func LoadTLS(certFile, keyFile string) (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, err
	}
	var last atomic.Pointer[tls.Certificate]
	last.Store(&cert)
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		if cert, err := tls.LoadX509KeyPair(certFile, keyFile); err == nil {
			last.Store(&cert)
		}
		return last.Load(), nil
	}}, nil
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
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
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
	<-ended
	return nil
}
