package web_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"testing"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/web"
)

func TestServe(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- web.Serve(ctx, ln, newSite(t), nil, slog.New(slog.DiscardHandler))
	}()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	res, err := client.Get("http://" + ln.Addr().String() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("code %d", res.StatusCode)
	}
	stop()
	if err := <-served; err != nil {
		t.Errorf("Serve: %v, want nil", err)
	}
	if res, err := client.Get("http://" + ln.Addr().String() + "/healthz"); err == nil {
		res.Body.Close()
		t.Error("answered after the stop")
	}
}

func TestServeReportsFailure(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	if err := web.Serve(t.Context(), ln, http.NotFoundHandler(), nil, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("Serve on a closed listener returned nil")
	}
}
