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
	flags := flag.NewFlagSet("report", flag.ContinueOnError)
	in := flags.String("json", "", "the JSON of a run; required")
	markdown := flags.String("md", "", "file for the Markdown (default: standard output, unless -html is given)")
	page := flags.String("html", "", "file for the HTML page")
	if err := parse(flags, args); err != nil {
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
		if err := writeText(*page, text); err != nil {
			return fmt.Errorf("-html: %w", err)
		}
	}
	switch {
	case *markdown != "":
		if err := writeText(*markdown, report.Markdown(run)); err != nil {
			return fmt.Errorf("-md: %w", err)
		}
	case *page == "":
		fmt.Print(report.Markdown(run))
	}
	return nil
}

func writeText(path, text string) error {
	return os.WriteFile(path, []byte(text), 0o644) //nolint:gosec // a report is to be read
}
