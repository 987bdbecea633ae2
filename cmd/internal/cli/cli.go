// Package cli is what Belay's commands share.
package cli

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"
)

// Parse parses a command line, and returns its words. Flags may stand behind them, too; behind -- all
// are words. The error matches usage, or flag.ErrHelp.
func Parse(flags *flag.FlagSet, args []string, usage error) (words []string, err error) {
	for {
		if err := flags.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return nil, err
			}
			return nil, fmt.Errorf("%w: %w. An ID that begins with a dash stands behind --", usage, err)
		}
		rest := flags.Args()
		parsed := len(args) - len(rest)
		if len(rest) == 0 || parsed > 0 && args[parsed-1] == "--" {
			return append(words, rest...), nil
		}
		words, args = append(words, rest[0]), rest[1:]
	}
}

// PrintJSON prints a value as indented JSON.
func PrintJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// Moment returns a time as commands print it.
func Moment(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }
