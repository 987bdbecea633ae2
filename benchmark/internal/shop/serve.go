package shop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// Listening is what Serve writes in front of its address once it can be asked.
const Listening = "listening on "

const (
	readyLimit = 30 * time.Second
	closeLimit = 15 * time.Second
)

// Serve serves until ctx ends. Only loopback addresses are taken.
func Serve(ctx context.Context, addr string, cfg Config, out io.Writer) (err error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("-listen %s: %w", addr, err)
	}
	defer ln.Close()
	if tcp, ok := ln.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		return fmt.Errorf("-listen %s: not a loopback address", addr)
	}
	ready, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	s, err := Open(ready, cfg)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
		defer cancel()
		err = errors.Join(err, s.Close(ctx))
	}()
	h, err := newHandler(s)
	if err != nil {
		return err
	}
	if err := s.Ping(ready); err != nil {
		return err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	stopped := make(chan error, 1)
	context.AfterFunc(ctx, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
		defer cancel()
		stopped <- server.Shutdown(ctx)
	})
	fmt.Fprintf(out, "%s%s\n", Listening, ln.Addr())
	if err := server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}
