package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
)

// forget deletes the heartbeats of services that are out of use, which ends the
// incidents of their silence. A service is known again by its next heartbeat or event.
func forget(ctx context.Context, c *call) (err error) {
	st, err := c.openStore(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	line := store.AuditLine{Who: fmt.Sprintf("uid %d", os.Getuid()), Remote: "command line", Action: "forget service"}
	if u, err := user.Current(); err == nil { // a container may have no name for it
		line.Who = u.Username
	}
	for _, pattern := range c.names() {
		forgotten, err := st.Forget(ctx, pattern)
		switch {
		case err != nil:
			return err
		case len(forgotten) == 0:
			return fmt.Errorf("no known service matches %.80q", pattern)
		}
		for _, service := range forgotten {
			line.At, line.Subject = time.Now(), service
			if err := st.Audit(ctx, line); err != nil {
				return err
			}
			fmt.Fprintf(c.stdout, "forgot %.80q\n", service)
		}
	}
	return nil
}
