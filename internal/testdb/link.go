package testdb

import (
	"bytes"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// A Link is a TCP proxy in front of the database that can cut its connections
// when a COMMIT comes by.
type Link struct {
	Addr   string
	Before atomic.Bool // cut without passing the COMMIT on
	After  atomic.Bool // pass it on, and cut instead of its answer
}

// NewLink returns a link to target, host:port, that closes when the test ends.
func NewLink(tb testing.TB, target string) *Link {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	k := &Link{Addr: l.Addr().String()}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", target)
			if err != nil {
				in.Close()
				return
			}
			wg.Go(func() { k.up(in, out) })
			wg.Go(func() {
				_, _ = io.Copy(in, out)
				in.Close()
			})
		}
	})
	tb.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	return k
}

func (k *Link) up(in, out net.Conn) {
	defer in.Close()
	defer out.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := in.Read(buf)
		if err != nil {
			return
		}
		commit := bytes.Contains(buf[:n], []byte("COMMIT"))
		if commit && k.Before.Load() {
			return
		}
		if commit && k.After.Load() {
			in.Close() // the answer finds nobody
		}
		if _, err := out.Write(buf[:n]); err != nil {
			return
		}
		if commit && k.After.Load() {
			// Wait until the server has answered and closes after our end does.
			_ = out.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, out)
			return
		}
	}
}

// Through returns dsn, which leads to k's target, by way of k.
func (k *Link) Through(tb testing.TB, dsn string) string {
	tb.Helper()
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		tb.Fatal(err)
	}
	cfg.Addr = k.Addr
	return cfg.FormatDSN()
}

// AddrOf returns the address, host:port, in dsn.
func AddrOf(tb testing.TB, dsn string) string {
	tb.Helper()
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		tb.Fatal(err)
	}
	return cfg.Addr
}
