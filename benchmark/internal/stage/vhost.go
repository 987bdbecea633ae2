package stage

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// vhost is a virtual host of RabbitMQ of the run's own, so that no other
// consumer takes its events.
type vhost struct {
	api, name string
	url       string // of the broker, with it
}

func newVhost(ctx context.Context, s Servers) (*vhost, error) {
	broker, err := url.Parse(s.AMQP)
	if err != nil {
		return nil, errors.New("BELAY_AMQP_URL is not a URL")
	}
	v := &vhost{api: strings.TrimSuffix(s.API, "/"), name: "benchmark-" + strings.ToLower(rand.Text()[:8])}
	if err := v.manage(ctx, http.MethodPut, "/api/vhosts/"+v.name, ""); err != nil {
		return nil, err
	}
	user := url.PathEscape(broker.User.Username())
	err = v.manage(ctx, http.MethodPut, "/api/permissions/"+v.name+"/"+user, `{"configure":".*","write":".*","read":".*"}`)
	if err != nil {
		return nil, errors.Join(err, v.close(ctx))
	}
	broker.Path = "/" + v.name
	v.url = broker.String()
	return v, nil
}

func (v *vhost) close(ctx context.Context) error {
	return v.manage(ctx, http.MethodDelete, "/api/vhosts/"+v.name, "")
}

func (v *vhost) manage(ctx context.Context, method, path, body string) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, v.api+path, strings.NewReader(body))
	if err != nil {
		return errors.New("BELAY_AMQP_API is not a URL")
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		e, ok := errors.AsType[*url.Error](err)
		if ok { // its own text has the URL, and so the password
			err = e.Err
		}
		return fmt.Errorf("ask rabbitmq: %w", err)
	}
	_ = response.Body.Close()
	if response.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("ask rabbitmq: %s %s: %s", method, path, response.Status)
	}
	return nil
}
