package watch

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
)

const (
	// maxClients bounds the connections that a node may list: it serves nothing else
	// meanwhile.
	maxClients = 2000
	maxName    = 64 // bytes
)

// client is a connection to a node, as in CLIENT LIST.
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

func parseClient(line string) client {
	fields := make(map[string]string)
	for field := range strings.FieldsSeq(line) {
		name, value, _ := strings.Cut(field, "=")
		fields[name] = value
	}
	idle, _ := strconv.Atoi(fields["idle"])
	return client{
		addr: fields["addr"], name: fields["name"], user: fields["user"], lib: fields["lib-name"],
		command: fields["cmd"], idle: time.Duration(idle) * time.Second,
	}
}

// java reports whether it is Redisson, which releases its locks with DEL.
func (c client) java() bool { return strings.Contains(strings.ToLower(c.lib), "redisson") }

// callers names one of the clients that called one of the commands last, within the
// time before the look, and adds to the counts how many there are, unless nobody
// knows.
func callers(clients []client, counts map[string]int64, within time.Duration) map[string]string {
	if clients == nil {
		return nil
	}
	var names map[string]string
	var found int64
	for _, c := range clients {
		if counts[c.command] == 0 || c.idle > within+time.Second {
			continue
		}
		if found++; found == 1 {
			names = map[string]string{Client: text.Clip(c.addr, maxName)}
			if c.name != "" {
				names[ClientName] = text.Clip(c.name, maxName)
			}
			if c.user != "" && c.user != "default" {
				names[User] = text.Clip(c.user, maxName)
			}
		}
	}
	counts[Callers] = found
	return names
}
