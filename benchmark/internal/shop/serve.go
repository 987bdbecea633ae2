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
	ln, err := listen(ctx, addr)
	if err != nil {
		return err
	}
	s, err := Open(cfg)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
		defer cancel()
		err = errors.Join(err, s.Close(ctx))
	}()
	h, err := newHandler(s)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	ready, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	if err := errors.Join(s.Migrate(ready), s.Ping(ready)); err != nil {
		return errors.Join(err, ln.Close())
	}

	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	fmt.Fprintf(out, "%s%s\n", Listening, ln.Addr())
	select {
	case err = <-served:
	case <-ctx.Done():
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
		defer cancel()
		err = server.Shutdown(stop)
		if e := <-served; !errors.Is(e, http.ErrServerClosed) {
			err = errors.Join(err, e)
		}
	}
	return err
}

func listen(ctx context.Context, addr string) (net.Listener, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("-listen %s: %w", addr, err)
	}
	if tcp, ok := ln.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		return nil, errors.Join(fmt.Errorf("-listen %s: not a loopback address", addr), ln.Close())
	}
	return ln, nil
}
