package httprelay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/belaygo/belay/relay"
)

// maxAnswer bounds what is read of an answer, so that its connection can be used again.
const maxAnswer = 64 << 10

// Config sets up a Publisher. Source is required.
type Config struct {
	// Source is the CloudEvents attribute source: which service the messages are from, as a
	// URI or a path such as "/orders".
	Source string
	// Header is added to each request, such as Authorization.
	Header http.Header
	// Client makes the requests. Its redirects are not followed. Defaults to a client with at
	// most 64 connections.
	Client *http.Client
}

// A Publisher posts messages. It is safe for concurrent use.
//
// Publish returns nil once the endpoint has accepted m. An error that matches
// relay.ErrUnavailable is that of the endpoint, and one that matches relay.ErrRejected that of m.
type Publisher interface {
	relay.Publisher

	// Close closes connections that are idle.
	Close()
}

type publisher struct {
	url    string
	cfg    Config
	client *http.Client
}

// New returns a Publisher that posts to a URL.
func New(address string, cfg Config) (Publisher, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return nil, errors.New("httprelay: the address does not begin with http://host or https://host")
	case cfg.Source == "":
		return nil, errors.New("httprelay: Source is missing")
	}
	if _, err := url.Parse(cfg.Source); err != nil {
		return nil, fmt.Errorf("httprelay: Source is no URI: %w", err)
	}
	client := http.Client{Transport: newTransport()}
	if cfg.Client != nil {
		client = *cfg.Client
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	cfg.Header = cfg.Header.Clone()
	return &publisher{url: address, cfg: cfg, client: &client}, nil
}

func newTransport() *http.Transport {
	const connections = 64
	dialer := net.Dialer{Timeout: 5 * time.Second} // a host that does not answer is unavailable
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, MaxConnsPerHost: connections, MaxIdleConnsPerHost: connections,
		IdleConnTimeout: 30 * time.Second, TLSHandshakeTimeout: 10 * time.Second,
	}
}

func (p *publisher) Publish(ctx context.Context, m relay.Message) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(m.Body))
	if err != nil {
		return fmt.Errorf("httprelay: %w", err)
	}
	p.describe(req.Header, m)
	res, err := p.client.Do(req)
	switch {
	case err != nil && (ctx.Err() != nil || timedOut(err)):
		return fmt.Errorf("httprelay: no answer: %w", withoutURL(err))
	case err != nil:
		return fmt.Errorf("httprelay: %w (%w)", withoutURL(err), relay.ErrUnavailable)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxAnswer)) // the status has decided
	return judge(res.StatusCode)
}

// withoutURL takes off the layer of the error that quotes the address: whoever knows it may post there.
func withoutURL(err error) error {
	if layer, ok := errors.AsType[*url.Error](err); ok {
		return layer.Err
	}
	return err
}

// timedOut reports whether a request was sent, or may have been, and the client's own limit has ended
// the wait for an answer: the message may be at fault.
func timedOut(err error) bool {
	var network *net.OpError
	if errors.As(err, &network) && network.Op == "dial" {
		return false
	}
	return os.IsTimeout(err)
}

// describe sets the attributes of a message. A header of the message is an attribute if its name can
// be one.
func (p *publisher) describe(h http.Header, m relay.Message) {
	h.Set("Content-Type", "application/octet-stream")
	for name, value := range m.Headers {
		name = strings.ToLower(name)
		if isAttribute(name) {
			h.Set("Ce-"+name, encode(value))
		}
		if value = legible(value); value != "" && slices.Contains(passed, name) {
			h.Set(name, value)
		}
	}
	id := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(m.ID) + `"`
	h.Set("Idempotency-Key", id)
	h.Set("Belay-Message", id)
	h.Set("Ce-Specversion", "1.0")
	h.Set("Ce-Id", encode(m.ID))
	h.Set("Ce-Source", encode(p.cfg.Source))
	h.Set("Ce-Type", encode(m.Topic))
	h.Set("Ce-Time", m.Time.UTC().Format(time.RFC3339Nano))
	if m.Key != "" {
		h.Set("Ce-Partitionkey", encode(m.Key))
	}
	maps.Copy(h, p.cfg.Header)
}

// passed are the headers of a message that are those of the request.
var passed = []string{"content-type", "traceparent", "tracestate"}

// legible returns a value without what no header may have.
func legible(value string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, value)
}

// isAttribute reports whether name can be that of a CloudEvents attribute.
func isAttribute(name string) bool {
	return name != "" && len(name) <= 20 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// encode spells a value as the HTTP binding of CloudEvents does.
func encode(value string) string {
	var b strings.Builder
	for n := range len(value) {
		if c := value[n]; c <= ' ' || c > '~' || c == '"' || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// judge returns the error that follows from the status of an answer.
func judge(status int) error {
	err := fmt.Errorf("httprelay: the endpoint answered %d %s", status, http.StatusText(status))
	switch {
	case status >= 200 && status < 300:
		return nil
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		return fmt.Errorf("%w (%w)", err, relay.ErrUnavailable)
	case status == http.StatusGone, status == http.StatusRequestEntityTooLarge:
		return fmt.Errorf("%w (%w)", err, relay.ErrRejected)
	}
	return err
}

func (p *publisher) Close() { p.client.CloseIdleConnections() }
