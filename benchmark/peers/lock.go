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
	warm := flags.Duration("warm", 500*time.Millisecond, "what goes before and does not count")
	short := flags.Bool("short", false, "one round of short measurements, to see that everything works")
	limit := flags.Duration("limit", 12*time.Minute, "no round begins that would probably end later")
	names := flags.String("contenders", "", "comma-separated names; empty = all")
	kinds := flags.String("workloads", "", "comma-separated names; empty = all")
	file := flags.String("json", "", "also write the results to this file")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *short {
		*rounds, *span, *warm = 1, 700*time.Millisecond, 300*time.Millisecond
	}
	if *rounds < 1 || *span <= 0 || *warm < 0 {
		return errors.New("rounds and time must be positive")
	}
	chosen, err := choose(*names)
	if err != nil {
		return err
	}
	if *short {
		hurry(chosen)
	}
	loads, err := chooseWorkloads(*kinds)
	if err != nil {
		return err
	}

	b := &bench{
		addrs:  addrs,
		meter:  newMeter(addrs),
		course: course{warm: *warm, span: *span},
		keys:   "bench:" + strconv.FormatInt(time.Now().UnixNano(), 36),
	}
	defer b.meter.close()
	fmt.Println(describe(ctx, addrs))
	fmt.Printf("%d rounds in turning order, %v each after %v of warm-up, every measurement in processes of its own; empty critical section; medians\n", *rounds, *span, *warm)
	present := introduce(chosen)

	began := time.Now()
	all, err := b.rounds(ctx, present, loads, *rounds, began.Add(*limit))
	if err != nil {
		return err
	}
	report(present, loads, all)
	fmt.Printf("\ntook %v · load now %s\n", time.Since(began).Round(time.Second), measure.LoadAverages())
	if *file == "" {
		return nil
	}
	return measure.WriteJSON(*file, all)
}

// hurry cuts the warm-up that some contenders need to be at their best.
func hurry(cs []contender) {
	for i := range cs {
		cs[i].warm = min(cs[i].warm, time.Second)
	}
}

// introduce prints the settings of all contenders and returns those that can
// run.
func introduce(all []contender) []contender {
	var present []contender
	for _, c := range all {
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

// rounds makes up to n rounds of all measurements, fewer when time runs out, and
// combines them.
func (b *bench) rounds(ctx context.Context, cs []contender, ws []workload, n int, end time.Time) ([]result, error) {
	taken := make(map[pairing][]result)
	var longest time.Duration
	for round := range n {
		began := time.Now()
		if round > 0 && began.Add(longest).After(end) {
			fmt.Printf("only %d rounds: another would take too long\n", round)
			break
		}
		if err := b.round(ctx, cs, ws, round, taken); err != nil {
			return nil, err
		}
		longest = max(longest, time.Since(began))
	}
	var all []result
	for _, w := range ws {
		for _, c := range cs {
			if rs := taken[pairing{c.name, w}]; len(rs) > 0 {
				all = append(all, combine(rs))
			}
		}
	}
	return all, nil
}

// round makes each measurement once. Who comes first changes from round to round.
func (b *bench) round(ctx context.Context, cs []contender, ws []workload, round int, taken map[pairing][]result) error {
	for _, w := range ws {
		for i := range cs {
			c := cs[(i+round)%len(cs)]
			if !w.suits(c) {
				continue
			}
			r, err := b.measure(ctx, c, w, round)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil { // the others go on
				r = failedResult(c, w, err)
			}
			p := pairing{c.name, w}
			taken[p] = append(taken[p], r)
		}
		fmt.Fprintf(os.Stderr, "round %d: %s, %d callers done\n", round+1, w.name, w.callers)
	}
	return nil
}

func report(cs []contender, ws []workload, all []result) {
	ours := make(map[string]bool)
	for _, c := range cs {
		ours[c.name] = c.ours
	}
	for _, w := range ws {
		var rs []result
		for _, r := range all {
			if r.Workload == w.name && r.Callers == w.callers {
				rs = append(rs, r)
			}
		}
		writeTable(os.Stdout, w, rs, ours)
	}
}
