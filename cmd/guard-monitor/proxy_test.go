package main_test

import (
	"io"
	"net"
	"sync"
	"testing"
)

// proxy stands for a broker that can go away and come back at one address.
type proxy struct {
	t      *testing.T
	addr   string
	target string

	mu    sync.Mutex
	ln    net.Listener
	conns []net.Conn
	wg    sync.WaitGroup
}

// newProxy returns a proxy to target that does not answer until it is opened.
func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	p := &proxy{t: t, addr: ln.Addr().String(), target: target}
	t.Cleanup(p.close)
	return p
}

func (p *proxy) open() {
	p.t.Helper()
	ln, err := net.Listen("tcp", p.addr)
	if err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	p.ln = ln
	p.mu.Unlock()
	p.wg.Go(func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.pass(client) })
		}
	})
}

func (p *proxy) pass(client net.Conn) {
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		client.Close()
		return
	}
	p.mu.Lock()
	p.conns = append(p.conns, client, server)
	gone := p.ln == nil
	p.mu.Unlock()
	if gone {
		client.Close()
		server.Close()
	}
	p.wg.Go(func() {
		_, _ = io.Copy(server, client)
		server.Close()
	})
	_, _ = io.Copy(client, server)
	client.Close()
}

// close cuts all connections and accepts no more until the next open.
func (p *proxy) close() {
	p.mu.Lock()
	if p.ln != nil {
		p.ln.Close()
		p.ln = nil
	}
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
	p.mu.Unlock()
	p.wg.Wait()
}
