package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/belaygo/belay/internal/wait"
)

// Poll calls done again and again until it reports true or an error. It returns an
// error that names what was waited for when the limit has passed.
func Poll(ctx context.Context, every, limit time.Duration, what string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		if err := wait.Sleep(ctx, every, nil); err != nil {
			return fmt.Errorf("it did not come about that %s: %w", what, err)
		}
	}
}

// maxAnswer bounds what Send reads.
const maxAnswer = 64 << 20

// Send sends a request and returns the body of the answer. A status of 300 or more
// is an error.
func Send(ctx context.Context, limit time.Duration, method, address, body string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return nil, errors.New("the address of a server is not a URL")
	}
	what := method + " " + request.URL.Redacted()
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok { // its own text has the URL, and so the password
			err = e.Err
		}
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusMultipleChoices {
		return nil, fmt.Errorf("%s: %s", what, response.Status)
	}
	return io.ReadAll(io.LimitReader(response.Body, maxAnswer))
}

// healthy waits until the server of p at an address answers that it is.
func (p *process) healthy(ctx context.Context, address string) error {
	return Poll(ctx, 20*time.Millisecond, startLimit, p.name+" is healthy", func() (bool, error) {
		_, err := Send(ctx, 2*time.Second, http.MethodGet, address+"/healthz", "")
		return err == nil, p.running()
	})
}
