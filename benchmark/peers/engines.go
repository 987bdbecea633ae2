package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/belaygo/belay/benchmark/internal/measure"
)

// engineCallers is how many callers cycle at a time, each with a key of its own.
var engineCallers = []int{1, 64, 1000}

// benchEngines is the command engines.
func benchEngines(ctx context.Context, addrs, args []string) error {
	flags := flag.NewFlagSet("engines", flag.ContinueOnError)
	rounds := flags.Int("rounds", 3, "how often each measurement is made; the median counts")
	span := flags.Duration("time", 2*time.Second, "length of one measurement")
	names := flags.String("engines", "", "comma-separated names; empty = all")
	pids := flags.String("pids", "", "folder of scripts/stack with the process ids of the servers, NODE.pid; empty = fsyncs are not counted")
	file := flags.String("json", "", "also write the results to this file")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *rounds < 1 || *span <= 0 {
		return errors.New("rounds and time must be positive")
	}
	five, err := startFive(ctx)
	if err != nil {
		return err
	}
	defer five.close()
	chosen, err := measure.Choose(*names, engines(addrs, five, *pids), func(e engine) string { return e.name })
	if err != nil {
		return err
	}
	fmt.Println(describe(ctx, addrs))
	fmt.Printf("each caller acquires and releases a key of its own; %d rounds in turning order, %v each; medians\n", *rounds, *span)
	b := engineBench{span: *span, keys: "bench:" + strconv.FormatInt(time.Now().UnixNano(), 36), taken: make(map[string][]engineResult)}
	for _, e := range chosen {
		fmt.Printf("  %-18s %s\n", e.name, e.settings)
	}
	for round := range *rounds {
		for i := range chosen {
			if err := b.measure(ctx, chosen[(i+round)%len(chosen)], round); err != nil {
				return err
			}
		}
		fmt.Fprintf(os.Stderr, "round %d of %d done\n", round+1, *rounds)
	}
	return b.report(ctx, chosen, *file)
}

// An engineBench has what was measured.
type engineBench struct {
	span  time.Duration
	keys  string                    // what all keys begin with
	taken map[string][]engineResult // by engine and callers
}

// An engineResult is what an engine reached with some callers.
type engineResult struct {
	Engine          string  `json:"engine"`
	Callers         int     `json:"c"`
	CyclesPerSecond float64 `json:"cycles_per_s"`
	P50             float64 `json:"p50_us"`
	P99             float64 `json:"p99_us"`
	Errors          int64   `json:"errors"`

	failure error // one of the errors
}

// An engineCost is what a cycle of one caller costs.
type engineCost struct {
	Engine   string   `json:"engine"`
	Requests *float64 `json:"requests_per_cycle"` // nil if they can't be counted
	Fsyncs   *float64 `json:"fsyncs_per_cycle"`
}

func resultOf(name string, callers int) string { return fmt.Sprint(name, "/", callers) }

// measure puts an engine to all numbers of callers.
func (b *engineBench) measure(ctx context.Context, e engine, round int) error {
	o, err := e.open(ctx)
	if err != nil {
		return fmt.Errorf("open %s: %w", e.name, err)
	}
	defer o.close()
	for _, n := range engineCallers {
		r := cycleAll(ctx, o, n, fmt.Sprint(b.keys, ":", round, ":", n), b.span)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.Engine = e.name
		b.taken[resultOf(e.name, n)] = append(b.taken[resultOf(e.name, n)], r)
	}
	return nil
}

// median combines the rounds of one measurement.
func (b *engineBench) median(name string, callers int) engineResult {
	all := b.taken[resultOf(name, callers)]
	r := engineResult{Engine: name, Callers: callers}
	r.CyclesPerSecond = measure.MedianOf(all, func(r engineResult) float64 { return r.CyclesPerSecond })
	r.P50 = measure.MedianOf(all, func(r engineResult) float64 { return r.P50 })
	r.P99 = measure.MedianOf(all, func(r engineResult) float64 { return r.P99 })
	for _, one := range all {
		r.Errors += one.Errors
		r.failure = errors.Join(r.failure, one.failure)
	}
	return r
}

// report counts what a cycle costs each engine, and writes the table.
func (b *engineBench) report(ctx context.Context, chosen []engine, file string) error {
	var results []engineResult
	var costs []engineCost
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "\nengine\tcycles/s at 1\tx %s\tat 64\tx %[1]s\tat 1000\tx %[1]s\tp50 µs at 1\trequests/cycle\tfsyncs/cycle\terrors\t\n", chosen[0].name)
	for _, e := range chosen {
		fmt.Fprintf(t, "%s\t", e.name)
		var failed int64
		for _, n := range engineCallers {
			r := b.median(e.name, n)
			results, failed = append(results, r), failed+r.Errors
			fmt.Fprintf(t, "%.0f\t%s\t", r.CyclesPerSecond, ratio(r.CyclesPerSecond, b.median(chosen[0].name, n).CyclesPerSecond))
		}
		cost, err := e.cost(ctx, b.keys)
		if err != nil {
			return fmt.Errorf("count what %s costs: %w", e.name, err)
		}
		costs = append(costs, cost)
		fmt.Fprintf(t, "%.0f\t%s\t%s\t%d\t\n", b.median(e.name, 1).P50, figure(cost.Requests), figure(cost.Fsyncs), failed)
	}
	_ = t.Flush()
	for _, r := range results {
		if r.failure != nil {
			fmt.Printf("  errors of %s at %d callers: %v\n", r.Engine, r.Callers, r.failure)
		}
	}
	fmt.Printf("load now %s\n", measure.LoadAverages())
	return measure.WriteJSON(file, map[string]any{"results": results, "costs": costs})
}

func figure(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", *v)
}
