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

// openVhost makes a virtual host of RabbitMQ for the run, so that no other consumer
// takes its events. It returns the URL of the broker with it.
func (s *Stage) openVhost(ctx context.Context) (string, error) {
	broker, err := url.Parse(s.cfg.Servers.AMQP)
	if err != nil {
		return "", errors.New(EnvAMQP + " is not a URL")
	}
	name := "benchmark-" + strings.ToLower(rand.Text()[:8])
	manage := func(ctx context.Context, method, path, body string) error {
		_, err := Send(ctx, 15*time.Second, method, strings.TrimSuffix(s.cfg.Servers.API, "/")+path, body)
		if err != nil {
			return fmt.Errorf("manage the virtual host of the run: %w", err)
		}
		return nil
	}
	if err := manage(ctx, http.MethodPut, "/api/vhosts/"+name, ""); err != nil {
		return "", err
	}
	s.Later(func(ctx context.Context) error { return manage(ctx, http.MethodDelete, "/api/vhosts/"+name, "") })
	broker.Path = "/" + name
	return broker.String(), manage(ctx, http.MethodPut, "/api/permissions/"+name+"/"+url.PathEscape(broker.User.Username()),
		`{"configure":".*","write":".*","read":".*"}`)
}
