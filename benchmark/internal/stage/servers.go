package stage

import (
	"errors"
	"fmt"
	"os"
)

// Servers are those of scripts/stack that a run needs.
type Servers struct {
	DSN  string // MariaDB
	AMQP string // RabbitMQ
	API  string // its HTTP API, with user and password
}

// ErrNoStack: the servers are not there.
var ErrNoStack = errors.New(`the servers' addresses are not set: start them with "scripts/stack up", then: eval "$(scripts/stack env)"`)

// FromEnvironment finds them through the variables of scripts/stack env.
func FromEnvironment() (Servers, error) {
	var missing error
	get := func(name string) string {
		value := os.Getenv(name)
		if value == "" && missing == nil {
			missing = fmt.Errorf("%s: %w", name, ErrNoStack)
		}
		return value
	}
	s := Servers{DSN: get("BELAY_MYSQL_DSN"), AMQP: get("BELAY_AMQP_URL"), API: get("BELAY_AMQP_API")}
	return s, missing
}
