package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/belaygo/belay/benchmark/internal/report"
	"github.com/belaygo/belay/benchmark/internal/result"
)

func runReport(_ context.Context, args []string) error {
	fs := flag.NewFlagSet("report", flag.ContinueOnError)
	in := fs.String("json", "", "the JSON of a run; required")
	markdown := fs.String("md", "", "file for the Markdown (default: standard output, unless -html is given)")
	page := fs.String("html", "", "file for the HTML page")
	if err := parse(fs, args); err != nil {
		return err
	}
	if *in == "" {
		return usagef("-json is not set")
	}
	run, err := result.Read(*in)
	if err != nil {
		return err
	}
	if *page != "" {
		text, err := report.HTML(run)
		if err != nil {
			return err
		}
		if err := os.WriteFile(*page, []byte(text), 0o644); err != nil { //nolint:gosec // a report is to be read
			return fmt.Errorf("-html: %w", err)
		}
	}
	switch {
	case *markdown != "":
		if err := os.WriteFile(*markdown, []byte(report.Markdown(run)), 0o644); err != nil { //nolint:gosec // a report is to be read
			return fmt.Errorf("-md: %w", err)
		}
	case *page == "":
		fmt.Print(report.Markdown(run))
	}
	return nil
}
