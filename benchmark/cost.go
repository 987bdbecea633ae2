package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"text/tabwriter"

	"github.com/belaygo/belay/benchmark/internal/cost"
	"github.com/belaygo/belay/benchmark/internal/measure"
	"github.com/belaygo/belay/benchmark/internal/shop"
	"github.com/belaygo/belay/benchmark/internal/stage"
)

// growthLimit is what the figures of Belay may grow by from the smallest tables
// to the largest.
const growthLimit = 1.15

type costConfig struct {
	servers stage.Servers
	rows    []int64
	methods []shop.Method
	all     bool // requests, too
	n       int
	rounds  int
	json    string
}

// runCost measures on the servers of the environment, without HTTP. Nothing else
// should use them meanwhile: the counters are the servers' own.
func runCost(ctx context.Context, args []string) error {
	cfg, err := costFlags(args)
	if err != nil {
		return err
	}
	costs, err := measureCosts(ctx, cfg)
	if ctx.Err() != nil && err != nil {
		err = fmt.Errorf("interrupted (%w)", err)
	}
	return showCosts(costs, cfg.json, err)
}

// showCosts shows what was measured, and writes it to a file unless path is "": also
// after an error, which is err.
func showCosts(costs []cost.Cost, path string, err error) error {
	if len(costs) == 0 {
		return err
	}
	printCosts(costs)
	if said := verdict(costs); err == nil && said != "" {
		fmt.Printf("\n%s\n", said)
	}
	for _, over := range cost.OverBudget(costs) {
		err = errors.Join(err, errors.New(over))
	}
	return errors.Join(err, measure.WriteJSON(path, costs))
}

func costFlags(args []string) (cfg costConfig, err error) {
	flags := flag.NewFlagSet("cost", flag.ContinueOnError)
	rows := flags.String("rows", strconv.Itoa(defaultRows), "sizes of the seeded tables, with commas between them: 100000,10000000 shows how the cost grows")
	methods := flags.String("methods", "", "methods to measure, with commas between them; empty = all, and requests that take effect once")
	numberFlag(flags, &cfg.n, "n", 400, 1, 1_000_000, "operations of each kind and round")
	numberFlag(flags, &cfg.rounds, "repeat", 5, 1, 1000, "rounds, of which the medians are taken")
	flags.StringVar(&cfg.json, "json", "", "file for the results")
	if err := parse(flags, args); err != nil {
		return cfg, err
	}
	if cfg.rows, err = numbers[int64](*rows, 1000, shop.MaxRows); err != nil {
		return cfg, usagef("-rows: %w", err)
	}
	if slices.Sort(cfg.rows); len(slices.Compact(slices.Clone(cfg.rows))) < len(cfg.rows) {
		return cfg, usagef("-rows %s: a size is named twice", *rows)
	}
	if cfg.methods, err = shop.ParseMethods(*methods); err != nil {
		return cfg, usagef("-methods: %w", err)
	}
	cfg.all = *methods == ""
	if cfg.servers, err = stage.FromEnvironment(stage.EnvDSN, stage.EnvAMQP, stage.EnvRedis); err != nil {
		return cfg, err
	}
	return cfg, checkOutput(cfg.json)
}

// measureCosts opens the tables of all sizes and measures on them. It returns what
// it has measured also with an error.
func measureCosts(ctx context.Context, cfg costConfig) (costs []cost.Cost, err error) {
	var benches []*cost.Bench
	defer func() {
		for _, b := range benches {
			err = errors.Join(err, b.Close(ctx))
		}
	}()
	for _, rows := range cfg.rows {
		b, err := cost.Open(ctx, cfg.servers, rows)
		if err != nil {
			return nil, err
		}
		benches = append(benches, b)
	}
	var all []cost.Cost
	count := measure.Progress(os.Stderr, "measure", 0, int64(cfg.rounds*len(cfg.methods)))
	for round := range cfg.rounds {
		for _, m := range cfg.methods {
			// All sizes within moments, so that what else the machine does changes
			// none of the ratios.
			for i := range benches {
				measured, err := benches[(i+round)%len(benches)].Measure(ctx, m, cfg.n)
				if err != nil {
					return cost.Medians(all), err
				}
				all = append(all, measured...)
			}
			count(1)
		}
		for i := 0; cfg.all && i < len(benches); i++ {
			measured, err := benches[(i+round)%len(benches)].MeasureRequests(ctx, cfg.n)
			if err != nil {
				return cost.Medians(all), err
			}
			all = append(all, measured...)
		}
	}
	return cost.Medians(all), nil
}

// printCosts prints a line per operation and size; with two sizes or more also
// by how much the largest costs more than the smallest.
func printCosts(costs []cost.Cost) {
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "method\tcase\trows\t")
	for _, f := range cost.Figures() {
		fmt.Fprint(t, f.Name, "\t")
	}
	fmt.Fprintln(t)
	for i, c := range costs {
		printCost(t, c, strconv.FormatInt(c.Rows, 10))
		if small, ok := smallest(costs, i); ok {
			printCost(t, cost.Growth(small, c), "ratio")
		}
	}
	_ = t.Flush()
}

// smallest returns the cost of the i-th operation on the smallest tables, if the
// i-th is on the largest and these are others.
func smallest(costs []cost.Cost, i int) (small cost.Cost, ok bool) {
	if i+1 < len(costs) && costs[i].Same(costs[i+1]) {
		return small, false
	}
	first := slices.IndexFunc(costs, costs[i].Same)
	return costs[first], first < i
}

// verdict says whether Belay costs more on larger tables; "" if there are none.
func verdict(costs []cost.Cost) string {
	greatest, growth, compared := 0.0, "none", false
	for i, c := range costs {
		small, ok := smallest(costs, i)
		if !ok || !shop.Method(c.Method).Guarded() {
			continue
		}
		compared = true
		if name, ratio := cost.Greatest(small, c); ratio > greatest {
			greatest, growth = ratio, fmt.Sprintf("%.2f, in %s of %s, %s", ratio, name, c.Method, c.Case)
		}
	}
	if !compared {
		return ""
	}
	judged := "reached"
	if greatest > growthLimit {
		judged = "missed"
	}
	return fmt.Sprintf("Belay's greatest growth: %s; to reach: at most %.2f: %s", growth, growthLimit, judged)
}

func printCost(t *tabwriter.Writer, c cost.Cost, size string) {
	fmt.Fprintf(t, "%s\t%s\t%s\t", c.Method, c.Case, size)
	for _, f := range cost.Figures() {
		v, digits := f.In(c), 2
		if v >= 20 {
			digits = 0
		}
		fmt.Fprint(t, strconv.FormatFloat(v, 'f', digits, 64), "\t")
	}
	fmt.Fprintln(t)
}
