package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/belaygo/belay/benchmark/internal/measure"
)

// benchLock is the command lock.
func benchLock(ctx context.Context, addrs, args []string) error {
	flags := flag.NewFlagSet("lock", flag.ContinueOnError)
	rounds := flags.Int("rounds", 3, "how often each measurement is made; the median counts")
	span := flags.Duration("time", 2500*time.Millisecond, "length of one measurement")
	short := flags.Bool("short", false, "one round of short measurements, to see that everything works")
	names := flags.String("contenders", "", "comma-separated names; empty = all")
	kinds := flags.String("workloads", "", "comma-separated names; empty = all")
	file := flags.String("json", "", "also write the results to this file")
	if err := flags.Parse(args); err != nil {
		return err
	}
	warm := 500 * time.Millisecond // goes before and does not count
	if *short {
		*rounds, *span, warm = 1, 700*time.Millisecond, 300*time.Millisecond
	}
	if *rounds < 1 || *span <= 0 {
		return errors.New("rounds and time must be positive")
	}
	chosen, err1 := choose(*names)
	loads, err2 := measure.Choose(*kinds, workloads(), func(w workload) string { return w.name })
	if err := errors.Join(err1, err2); err != nil {
		return err
	}

	b := &bench{addrs: addrs, meter: newMeter(addrs), warm: warm, span: *span, keys: "bench:" + strconv.FormatInt(time.Now().UnixNano(), 36)}
	defer b.meter.close()
	fmt.Println(describe(ctx, addrs))
	fmt.Printf("%d rounds in turning order, %v each after %v of warm-up, every measurement in processes of its own; empty critical section; medians\n", *rounds, *span, warm)
	present := introduce(chosen, *short)

	began := time.Now()
	taken := make(map[pairing][]result)
	for round := range *rounds {
		if err := b.round(ctx, present, loads, round, taken); err != nil {
			return err
		}
	}
	var all []result
	for _, w := range loads {
		var rs []result
		for _, c := range present {
			if of := taken[pairing{c.name, w}]; len(of) > 0 {
				rs = append(rs, combine(of))
			}
		}
		writeTable(os.Stdout, w, rs)
		all = append(all, rs...)
	}
	fmt.Printf("\ntook %v · load now %s\n", time.Since(began).Round(time.Second), measure.LoadAverages())
	return measure.WriteJSON(*file, all)
}

// introduce prints the settings of all contenders and returns those that can run. If
// short, none warms up for long, and some are not at their best.
func introduce(all []contender, short bool) (present []contender) {
	for _, c := range all {
		if short {
			c.warm = min(c.warm, time.Second)
		}
		if c.absent != "" {
			fmt.Printf("  %-18s not run: %s\n", c.name, c.absent)
			continue
		}
		if c.warm > 0 {
			c.settings += fmt.Sprintf("; %v more of warm-up", c.warm)
		}
		fmt.Printf("  %-18s %s\n", c.name, c.settings)
		present = append(present, c)
	}
	return present
}

// pairing is one contender in one workload.
type pairing struct {
	contender string
	workload  workload
}

// round makes each measurement once. The order changes from round to round.
func (b *bench) round(ctx context.Context, cs []contender, ws []workload, round int, taken map[pairing][]result) error {
	for _, w := range ws {
		for i := range cs {
			c := cs[(i+round)%len(cs)]
			if w.contended() && c.cannotWait {
				continue
			}
			r, err := b.measure(ctx, c, w, round)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil { // the others go on
				r = newResult(c, w, []outcome{{Errors: 1, Error: err.Error()}}, b.span)
			}
			p := pairing{c.name, w}
			taken[p] = append(taken[p], r)
		}
		fmt.Fprintf(os.Stderr, "round %d: %s, %d callers done\n", round+1, w.name, w.callers)
	}
	return nil
}
