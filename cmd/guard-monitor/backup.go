package main

import (
	"context"
	"fmt"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
)

// backup copies the database to a new file.
func backup(ctx context.Context, c *call) error {
	if len(c.args) != 1 {
		return usagef("backup takes one file")
	}
	if err := store.Backup(ctx, c.cfg.DB, c.args[0]); err != nil {
		return err
	}
	_, err := fmt.Fprintf(c.stdout, "copied %s to %s\n", c.cfg.DB, c.args[0])
	return err
}
