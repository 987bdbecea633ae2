package main

import (
	"bufio"
	"context"
	"fmt"

	"github.com/belaygo/belay/internal/requestkey"
)

// requestKeys prints the key and the id of each request whose id it reads. Events and Redis show
// the key alone, which is a hash: this finds the request among those that an access log has. It
// reads ids, and takes none as arguments, so that they are not in the list of processes.
func requestKeys(_ context.Context, c *call) error {
	operation, scope := c.args[0], c.args[1:]
	if len(scope) == 0 {
		scope = []string{"anyone"} // once.Anyone
	}
	ids := bufio.NewScanner(c.stdin)
	for ids.Scan() {
		if id := ids.Text(); id != "" {
			fmt.Fprintf(c.stdout, "%s %q\n", requestkey.Of(operation, scope, id), id)
		}
	}
	if err := ids.Err(); err != nil {
		return fmt.Errorf("read ids: %w", err)
	}
	return nil
}
