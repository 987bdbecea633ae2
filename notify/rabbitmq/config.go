package rabbitmq

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"time"
	"unicode/utf8"

	"github.com/belaygo/belay/internal/amqpurl"
)

// common is what Publisher and Consumer have in their configurations alike.
type common struct {
	name    string
	timeout time.Duration // of dialling
	tls     *tls.Config
	logger  *slog.Logger
}

func (c common) withDefaults(name string) common {
	if c.name == "" {
		c.name = name
	}
	if c.timeout == 0 {
		c.timeout = defaultDialTimeout
	}
	if c.logger == nil {
		c.logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c common) validate() error {
	switch {
	case !utf8.ValidString(c.name):
		return fmt.Errorf("rabbitmq: Name %q is not UTF-8", c.name)
	case c.timeout < 0:
		return fmt.Errorf("rabbitmq: DialTimeout %v is negative", c.timeout)
	}
	return nil
}

// dialling returns how to connect to the nodes in url.
func (c common) dialling(url string) (*dialConfig, error) {
	nodes, err := amqpurl.Parse(url)
	if err != nil {
		return nil, err
	}
	return &dialConfig{nodes: nodes, name: "belay " + short(c.name), tls: c.tls, timeout: c.timeout}, nil
}
