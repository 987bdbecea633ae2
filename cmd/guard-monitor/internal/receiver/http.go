package receiver

import (
	"bytes"
	"cmp"
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

// An answer is what a receiver has answered with a status of 2xx.
type answer struct {
	body       string
	retryAfter time.Duration // 0 if it does not say
}

// post sends body as JSON to address. The error for a status other than 2xx is an *Error.
func (r *Receiver) post(ctx context.Context, address string, body any) (a answer, err error) {
	raw, err := encode(body)
	if err != nil {
		return a, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(raw))
	if err != nil {
		return a, err
	}
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	req.Header.Set("User-Agent", "guard-monitor")
	if r.cfg.Token != "" {
		req.Header.Set("Authorization", "Bearer "+r.cfg.Token)
	}
	res, err := r.cfg.Client.Do(req)
	if err != nil {
		return a, withoutURL(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return a, fmt.Errorf("read answer: %w", withoutURL(err))
	}
	a = answer{string(text), retryAfter(res.Header)}
	if res.StatusCode/100 != 2 {
		return a, refusedStatus(res.StatusCode, a)
	}
	return a, nil
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
func refusedStatus(code int, a answer) error {
	temporary := code >= 500 || code == http.StatusTooManyRequests ||
		code == http.StatusRequestTimeout || code == http.StatusTooEarly
	return &Error{
		Permanent:  !temporary,
		RetryAfter: a.retryAfter,
		reason:     fmt.Sprintf("status %d", code),
		answer:     a.body,
	}
}

const maxRetryAfter = 3600 // seconds

// retryAfter reads seconds, from the header of the standard or from Feishu's. A date
// counts as none.
func retryAfter(h http.Header) time.Duration {
	seconds, _ := strconv.Atoi(cmp.Or(h.Get("Retry-After"), h.Get("X-Ogw-Ratelimit-Reset")))
	return time.Duration(min(max(seconds, 0), maxRetryAfter)) * time.Second
}

func quoted(answer string) string {
	answer = strings.TrimSpace(answer)
	if answer == "" {
		return "no reason given"
	}
	return text.Line(text.Clip(answer, maxQuoted))
}
