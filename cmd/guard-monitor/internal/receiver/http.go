package receiver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
)

const (
	sendTimeout = 10 * time.Second
	maxAnswer   = 64 << 10 // bytes that are read of an answer
	maxQuoted   = 300      // bytes of an answer that an error quotes
)

// newClient follows no redirect: it would carry the message, and with some
// statuses turn it into a GET that says it arrived.
func newClient() *http.Client {
	return &http.Client{
		Timeout:       sendTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// post sends body as JSON to address and returns the answer to a status of 2xx.
func (r *Receiver) post(ctx context.Context, address string, body any) ([]byte, error) {
	raw, err := encode(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	req.Header.Set("User-Agent", "guard-monitor")
	if r.cfg.Token != "" {
		req.Header.Set("Authorization", "Bearer "+r.cfg.Token)
	}
	res, err := r.cfg.Client.Do(req)
	if err != nil {
		return nil, withoutURL(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", withoutURL(err))
	}
	if res.StatusCode/100 != 2 {
		return nil, refusedStatus(res, answer)
	}
	return answer, nil
}

// encode leaves <, > and & as they are: this is no HTML, and escapes would make
// a message longer than its limit.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// withoutURL takes off the layer of the error that quotes the address.
func withoutURL(err error) error {
	if layer, ok := errors.AsType[*url.Error](err); ok {
		return layer.Err
	}
	return err
}

// refusedStatus: 4xx means that the same message would be refused again, but
// for "too early", "too often" and "timed out".
func refusedStatus(res *http.Response, answer []byte) error {
	code := res.StatusCode
	temporary := code >= 500 || code == http.StatusTooManyRequests ||
		code == http.StatusRequestTimeout || code == http.StatusTooEarly
	return &Error{
		Permanent:  !temporary,
		RetryAfter: retryAfter(res.Header.Get("Retry-After")),
		reason:     fmt.Sprintf("status %d", code),
		answer:     string(answer),
	}
}

const maxRetryAfter = 3600 // seconds

// retryAfter reads seconds. A date counts as none.
func retryAfter(header string) time.Duration {
	seconds, _ := strconv.Atoi(header)
	return time.Duration(min(max(seconds, 0), maxRetryAfter)) * time.Second
}

func quoted(answer string) string {
	answer = strings.TrimSpace(answer)
	if answer == "" {
		return "no reason given"
	}
	return text.Line(text.Clip(answer, maxQuoted))
}
