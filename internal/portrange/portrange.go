// Package portrange hands out ports for the servers of scripts/stack.
package portrange

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
)

// size is how many ports a stack has. On the first of them none of its servers
// listens.
const size = 40

// Reserve returns the first of 40 ports of 127.0.0.1 on which nobody listens, below
// those that the system gives out by itself. Until it is closed, or its process ends,
// nobody else gets one of them here: a listener on the first port says that all are
// taken.
func Reserve() (first int, reserved io.Closer, err error) {
	const from, ranges = 20000, 100
	for _, n := range rand.Perm(ranges) {
		first = from + size*n
		l, err := listen(first)
		if err != nil {
			continue
		}
		if free(first+1, size-1) {
			return first, l, nil
		}
		_ = l.Close()
	}
	return 0, nil, errors.New("portrange: no free ports for a stack")
}

func free(first, n int) bool {
	for port := first; port < first+n; port++ {
		l, err := listen(port)
		if err != nil {
			return false
		}
		_ = l.Close()
	}
	return true
}

func listen(port int) (net.Listener, error) {
	var config net.ListenConfig
	return config.Listen(context.Background(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}
