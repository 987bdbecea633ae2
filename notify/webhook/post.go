package webhook

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/belaygo/belay/internal/cloudevent"
	"github.com/belaygo/belay/internal/ingest"
)

const (
	maxAnswer = 8 << 10   // bytes that are read
	maxReason = 200       // bytes that are shown
	maxAfter  = time.Hour // that is believed
)

// post sends one event or heartbeat of a service, and returns nil if the monitor has
// answered that it has it. status is 0 without an answer.
func (p *publisher) post(ctx context.Context, id, service string, body []byte) (status int, err error) {
	r, err := p.send(ctx, http.MethodPost, ingest.Path, service, body)
	if err != nil {
		return 0, err
	}
	return r.code, p.judge(r, id)
}

// A reply is an HTTP response. Its Answer is empty if the response is not the monitor's.
type reply struct {
	ingest.Answer

	code       int
	retryAfter string // the header
}

// send makes one request for a service, and returns the reply.
func (p *publisher) send(ctx context.Context, method, path, service string, body []byte) (r reply, err error) {
	u := p.base.JoinPath(path)
	u.RawQuery = url.Values{ingest.Service: {service}}.Encode()
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return r, fmt.Errorf("webhook: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+p.cfg.Token)
	if len(body) > 0 {
		req.Header.Set("Content-Type", cloudevent.ContentType)
	}
	res, err := p.client.Do(req)
	if err != nil {
		return r, fmt.Errorf("webhook: %w", err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return r, fmt.Errorf("webhook: read the answer of %s: %w", p.url, err)
	}
	_ = json.Unmarshal(text, &r.Answer) // another server's answer leaves it empty
	r.code, r.retryAfter = res.StatusCode, res.Header.Get("Retry-After")
	return r, nil
}

// judge returns the error for the event of the given id that follows from an answer.
func (p *publisher) judge(r reply, id string) error {
	a, code := r.Answer, r.code
	says := fmt.Sprintf("%s answered %d: %s", p.url, code, p.reason(a))
	switch {
	case (code == http.StatusOK || code == http.StatusAccepted) && a.Taken == id:
		return nil
	case code == http.StatusOK || code == http.StatusAccepted:
		return fmt.Errorf("%w: %s answered %d, and not as guard-monitor does: check the address", errAnswered, p.url, code)
	case a.Rejected:
		return fmt.Errorf("%w: %s", errRejected, says)
	case code == http.StatusUnauthorized:
		return fmt.Errorf("%w: %s", errUnauthorized, says)
	case code == http.StatusForbidden:
		return fmt.Errorf("%w: %s", errForbidden, says)
	case code == http.StatusRequestEntityTooLarge:
		return fmt.Errorf("%w: %s", errTooLarge, says)
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable:
		return &busyError{fmt.Errorf("%w: %s", errAnswered, says), retryAfter(r.retryAfter)}
	case code >= 300 && code < 400:
		return fmt.Errorf("%w: %s answered %d, and redirects are not followed: check the address", errAnswered, p.url, code)
	}
	return fmt.Errorf("%w: %s", errAnswered, says)
}

// reason returns the monitor's reason, fit for a log, and without the token, which it may
// contain.
func (p *publisher) reason(a ingest.Answer) string {
	reason := strings.ReplaceAll(cmp.Or(a.Error, "no reason is given"), p.cfg.Token, "[hidden]")
	quoted := strconv.QuoteToASCII(reason[:min(len(reason), maxReason)])
	return quoted[1 : len(quoted)-1]
}

// retryAfter returns the pause in the header, given in seconds or as a date, and 0 if
// it cannot be read.
func retryAfter(header string) time.Duration {
	if seconds, err := strconv.ParseUint(header, 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, maxAfter)
	}
	if at, err := http.ParseTime(header); err == nil {
		return min(max(time.Until(at), 0), maxAfter)
	}
	return 0
}
