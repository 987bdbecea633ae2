package stage

import (
	"fmt"
	"os"
	"strings"
)

// Servers are those of scripts/stack.
type Servers struct {
	DSN   string   // MariaDB
	AMQP  string   // RabbitMQ
	API   string   // its HTTP API, with user and password
	Redis []string // nodes of the cluster
}

// The variables of scripts/stack env.
const (
	EnvDSN   = "BELAY_MYSQL_DSN"
	EnvAMQP  = "BELAY_AMQP_URL"
	EnvAPI   = "BELAY_AMQP_API"
	EnvRedis = "BELAY_REDIS_ADDRS"
)

// FromEnvironment finds the servers. It returns an error if a variable that is
// required is not set.
func FromEnvironment(required ...string) (Servers, error) {
	for _, name := range required {
		if os.Getenv(name) == "" {
			return Servers{}, fmt.Errorf(`%s is not set: start the servers with "scripts/stack up", then: eval "$(scripts/stack env)"`, name)
		}
	}
	return Servers{
		DSN: os.Getenv(EnvDSN), AMQP: os.Getenv(EnvAMQP), API: os.Getenv(EnvAPI), Redis: strings.Split(os.Getenv(EnvRedis), ","),
	}, nil
}
