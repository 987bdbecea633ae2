package link

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestRoundTrip: an answer takes the delay, and the end of one side reaches the other.
func TestRoundTrip(t *testing.T) {
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	ended := make(chan error, 1)
	go func() {
		server, err := ln.Accept()
		if err == nil {
			_, err = io.Copy(server, server)
			_ = server.Close()
		}
		ended <- err
	}()
	const delay = 20 * time.Millisecond
	l, err := Open(delay)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := l.Dial(t.Context(), "tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		start, answer := time.Now(), make([]byte, 4)
		if _, err := conn.Write([]byte("ping")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != "ping" {
			t.Fatalf("%q, %v", answer, err)
		}
		if took := time.Since(start); took < delay {
			t.Errorf("the answer came after %v, want at least %v", took, delay)
		}
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the server: %v", err)
	}
	if err := l.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}
