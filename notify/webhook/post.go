package webhook

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
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

// post sends one event or heartbeat, and returns nil if the monitor has answered that it
// has it. status is 0 without an answer.
func (p *Publisher) post(ctx context.Context, id string, body []byte) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("webhook: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+p.cfg.Token)
	req.Header.Set("Content-Type", cloudevent.ContentType)
	res, err := p.client.Do(req)
	if err != nil {
		return 0, fmt.Errorf("webhook: %w", err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return 0, fmt.Errorf("webhook: read the answer of %s: %w", p.url, err)
	}
	var a ingest.Answer
	_ = json.Unmarshal(text, &a) // whatever is not the monitor's leaves a empty
	return res.StatusCode, p.judge(res, a, id)
}

// judge returns what an answer means for the event of the given id.
func (p *Publisher) judge(res *http.Response, a ingest.Answer, id string) error {
	code := res.StatusCode
	says := fmt.Sprintf("%s answered %d: %s", p.url, code, p.reason(a))
	switch {
	case (code == http.StatusOK || code == http.StatusAccepted) && a.Taken == id:
		return nil
	case code == http.StatusOK || code == http.StatusAccepted:
		return fmt.Errorf("%w: %s answered %d, and not as guard-monitor does: check the address", errAnswered, p.url, code)
	case a.Rejected:
		return fmt.Errorf("%w: %s", errRejected, says)
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return fmt.Errorf("%w: %s", errUnauthorized, says)
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable:
		return &busyError{fmt.Errorf("%w: %s", errAnswered, says), retryAfter(res.Header.Get("Retry-After"))}
	case code >= 300 && code < 400:
		return fmt.Errorf("%w: %s answered %d, and redirects are not followed: check the address", errAnswered, p.url, code)
	}
	return fmt.Errorf("%w: %s", errAnswered, says)
}

// reason returns what the monitor says, fit for a log, and without the token that somebody
// may have put into it.
func (p *Publisher) reason(a ingest.Answer) string {
	reason := strings.ReplaceAll(cmp.Or(a.Error, "no reason is given"), p.cfg.Token, "[hidden]")
	quoted := strconv.QuoteToASCII(reason[:min(len(reason), maxReason)])
	return quoted[1 : len(quoted)-1]
}

// retryAfter returns what the header asks for, in seconds or as a date, and 0 if it
// can't be read.
func retryAfter(header string) time.Duration {
	if seconds, err := strconv.ParseUint(header, 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, maxAfter)
	}
	if at, err := http.ParseTime(header); err == nil {
		return min(max(time.Until(at), 0), maxAfter)
	}
	return 0
}
