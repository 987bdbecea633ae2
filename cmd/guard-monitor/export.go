package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/web"
)

// export writes the pages about what is stored as files.
func export(ctx context.Context, c *call) (err error) {
	if len(c.args) != 1 {
		return usagef("export takes one folder")
	}
	st, err := c.openStore(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	n, err := web.WriteFiles(ctx, web.Config{
		Store: st, DocsURL: c.cfg.DocsURL, Location: c.cfg.Location(), Logger: c.logger(),
	}, c.args[0])
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.stdout, "wrote %d pages to %s\n", n, c.args[0])
	return err
}
