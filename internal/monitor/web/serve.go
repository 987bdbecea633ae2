package web

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

const (
	drainTimeout   = 5 * time.Second
	maxHeaderBytes = 16 << 10
)

// Serve answers requests on ln with h until ctx ends, then gives requests in
// progress five seconds, and returns nil. It closes ln.
func Serve(ctx context.Context, ln net.Listener, h http.Handler, logger *slog.Logger) error {
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	var failed error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		failed = srv.Serve(ln)
	}()
	select {
	case <-ended:
		return fmt.Errorf("serve http: %w", failed)
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
