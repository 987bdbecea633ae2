package watch

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
)

const (
	// maxClients bounds the connections that a node is asked about: it stands
	// still while it answers.
	maxClients = 2000
	maxName    = 64 // bytes
)

// client is a connection to a node, as CLIENT LIST tells of it.
type client struct {
	addr, name, user, lib string
	command               string // the last, as in "config|set"
	idle                  time.Duration
}

// askClients returns the connections to a node: none if there are too many, or if
// guard-monitor may not ask.
func askClients(ctx context.Context, c *redis.Client, connected int64) []client {
	if connected > maxClients {
		return nil
	}
	list, err := c.ClientList(ctx).Result()
	if err != nil {
		return nil
	}
	var clients []client
	for line := range strings.Lines(list) {
		clients = append(clients, parseClient(line))
	}
	return clients
}

func parseClient(line string) (c client) {
	for field := range strings.FieldsSeq(line) {
		name, value, _ := strings.Cut(field, "=")
		switch name {
		case "addr":
			c.addr = value
		case "name":
			c.name = value
		case "user":
			c.user = value
		case "lib-name":
			c.lib = value
		case "cmd":
			c.command = value
		case "idle":
			n, _ := strconv.Atoi(value)
			c.idle = time.Duration(n) * time.Second
		}
	}
	return c
}

// java reports whether it is Redisson, which releases its locks with DEL.
func (c client) java() bool { return strings.Contains(strings.ToLower(c.lib), "redisson") }

// String names a client for people. A name is text from anybody.
func (c client) String() string {
	s := text.Line(text.Clip(c.addr, maxName))
	if c.name != "" {
		s += " named " + strconv.Quote(text.Clip(c.name, maxName))
	}
	if c.user != "" && c.user != "default" {
		s += " as user " + strconv.Quote(text.Clip(c.user, maxName))
	}
	return s
}

// callers says which of the clients called one of the commands last, within the
// time before the look.
func callers(clients []client, counts map[string]int64, within time.Duration) string {
	var named []string
	for _, c := range clients {
		if counts[c.command] > 0 && c.idle <= within+time.Second {
			named = append(named, c.String())
		}
	}
	switch {
	case len(named) == 0 && clients == nil:
		return "by a client that is not known"
	case len(named) == 0:
		return "by a script, or by a client that has left or gone on"
	case len(named) > 1:
		return fmt.Sprintf("by %s and %d more", named[0], len(named)-1)
	}
	return "by " + named[0]
}
