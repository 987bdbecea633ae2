package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belaygo/belay/benchmark/internal/sustained"
)

func runSustained(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("sustained", flag.ContinueOnError)
	common := newStageFlags(fs, "")
	duration := fs.Duration("duration", 30*time.Second, "time of each method and step")
	users := fs.String("users", "1,8,64,256,1000,2000", "concurrent users of the steps")
	keys := fs.String("keys", "uniform,hot,zipf", "how keys are chosen, some of: uniform,hot,zipf")
	repeats := fs.String("repeats", "at-once,sequence", "how orders with uniform keys come again, some of: at-once,sequence,none")
	kill := fs.Duration("kill", 0, "kill a master this long after each step of belay has begun; 0 = never")
	if err := parse(fs, args); err != nil {
		return err
	}
	cfg := sustained.Config{Duration: *duration, Kill: *kill}
	var err error
	if cfg.Concurrency, err = numbers(*users, 1, 10_000); err != nil {
		return usagef("-users: %w", err)
	}
	if cfg.Keys, err = among(*keys, sustained.Hot, sustained.Uniform, sustained.Zipf); err != nil {
		return usagef("-keys: %w", err)
	}
	if cfg.Repeats, err = among(*repeats, sustained.None, sustained.AtOnce, sustained.Sequence); err != nil {
		return usagef("-repeats: %w", err)
	}
	switch {
	case *duration < time.Second:
		return usagef("-duration %v: want at least 1s", *duration)
	case *kill < 0 || *kill >= *duration:
		return usagef("-kill %v: want 0 to -duration", *kill)
	}
	var out output
	if cfg.TrialConfig, out, err = common.parsed(); err != nil {
		return err
	}
	run, err := sustained.Run(ctx, cfg)
	return finish(ctx, run, out, err)
}

// numbers reads a list of numbers with commas between them.
func numbers(list string, least, greatest int) ([]int, error) {
	var all []int
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < least || n > greatest {
			return nil, fmt.Errorf("%q is not a number from %d to %d", text, least, greatest)
		}
		all = append(all, n)
	}
	return all, nil
}

// among reads a list of words with commas between them.
func among(list string, words ...string) ([]string, error) {
	var chosen []string
	for text := range strings.SplitSeq(list, ",") {
		word := strings.TrimSpace(text)
		if !slices.Contains(words, word) {
			return nil, fmt.Errorf("%q is none of %s", word, strings.Join(words, ", "))
		}
		chosen = append(chosen, word)
	}
	return chosen, nil
}
