package sqldb

import (
	"context"
	"embed"
	"strings"
)

// Schema returns the statements that create tables: the file of the folder schema that has the
// dialect's name. It is empty if there is none.
func (d Dialect) Schema(files embed.FS) string {
	statements, err := files.ReadFile("schema/" + d.Name + ".sql")
	if err != nil {
		return ""
	}
	return string(statements)
}

// Migrate runs statements that create what is not there yet, and repeats each that fails: on
// PostgreSQL two processes that create a table at once disturb each other.
func (d DB) Migrate(ctx context.Context, schema string) error {
	for statement := range strings.SplitSeq(schema, ";\n") {
		_, err := d.Exec(ctx, statement)
		if err != nil && ctx.Err() == nil {
			_, err = d.Exec(ctx, statement)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
