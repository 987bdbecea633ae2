// Package instance names a running instance of a service.
package instance

import (
	"fmt"
	"os"
)

// Name returns the name of this instance: host name and process id.
func Name() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}
