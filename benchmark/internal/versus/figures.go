package versus

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/belaygo/belay/benchmark/internal/measure"
	"github.com/belaygo/belay/benchmark/internal/result"
)

// Figures are what a case has done: in one round, or the medians of all.
type Figures struct {
	Case      string  `json:"case"`
	C         int     `json:"c"` // callers, in all processes
	Processes int     `json:"processes"`
	Ops       float64 `json:"ops_per_s"` // done, or refused as they should be
	P50       int64   `json:"p50_us"`
	P99       int64   `json:"p99_us"`
	Errors    int64   `json:"errors"`             // of all rounds
	Delay     int64   `json:"delay_us,omitempty"` // of each round trip

	err                  string // the first
	commands, statements float64
	micros               float64 // processor time of the processes
}

func (f Figures) key() caseKey { return caseKey{f.Case, f.C, f.Processes} }

// A Report is what a run has found out.
type Report struct {
	Figures   []Figures
	Targets   []result.Target
	RoundTrip time.Duration // of a script in Redis, without Delay
	Delay     time.Duration // of each round trip of the cases
}

// A round is what was measured within a minute.
type round struct {
	figures   map[caseKey]Figures
	roundTrip time.Duration
}

type caseKey struct {
	name               string
	callers, processes int
}

func (k caseKey) String() string { return k.name + " at " + k.crowd() }

// crowd says how many callers there are, and in how many processes if there are several.
func (k caseKey) crowd() string {
	if k.processes == 1 {
		return strconv.Itoa(k.callers)
	}
	return fmt.Sprintf("%d × %d", k.processes, k.callers/k.processes)
}

func medians(cases []Case, rounds []round, delay time.Duration) (all []Figures) {
	for _, c := range cases {
		var f Figures
		of := func(figure func(Figures) float64) float64 {
			return measure.MedianOf(rounds, func(r round) float64 { return figure(r.figures[c.key()]) })
		}
		for _, r := range rounds {
			one := r.figures[c.key()]
			f.Errors += one.Errors
			if f.err == "" {
				f.err = one.err
			}
		}
		f.Case, f.C, f.Processes, f.Delay = c.name, c.callers, c.processes, delay.Microseconds()
		f.Ops = float64(int64(of(func(f Figures) float64 { return f.Ops })*10)) / 10
		f.P50 = int64(of(func(f Figures) float64 { return float64(f.P50) }))
		f.P99 = int64(of(func(f Figures) float64 { return float64(f.P99) }))
		f.commands = of(func(f Figures) float64 { return f.commands })
		f.statements = of(func(f Figures) float64 { return f.statements })
		f.micros = of(func(f Figures) float64 { return f.micros })
		all = append(all, f)
	}
	return all
}

// targets compares cases within each round, and takes the medians.
func targets(rounds []round) (all []result.Target) {
	add := func(name string, limit float64, least bool, value func(round) float64, of ...caseKey) {
		for _, key := range of {
			if _, measured := rounds[0].figures[key]; !measured {
				return
			}
		}
		all = append(all, result.NewTarget(name, measure.Thousandths(measure.MedianOf(rounds, value)), limit, least))
	}
	compare := func(ours, theirs caseKey, figure string, limit float64, least bool, of func(Figures) float64) {
		name := fmt.Sprintf("%s / %s, %s", ours, theirs, figure)
		add(name, limit, least, func(r round) float64 { return of(r.figures[ours]) / max(0.1, of(r.figures[theirs])) }, ours, theirs)
	}
	rate := func(ours, theirs caseKey, limit float64) {
		compare(ours, theirs, "ops/s", limit, true, func(f Figures) float64 { return f.Ops })
	}
	at := func(name string, callers int) caseKey { return caseKey{name, callers, 1} }
	over := func(name string) caseKey { return caseKey{name, 64, 4} }
	rate(at(doInsert, 64), at(bareInsert, 64), 0.72)
	rate(at(doInsert, 500), at(bareInsert, 500), 1)
	ours, bare := at(doInsert, 1), at(bareInsert, 1)
	add(fmt.Sprintf("%s - %s, p50 at 1, in Redis round trips", doInsert, bareInsert), 2.5, false, func(r round) float64 {
		return float64(r.figures[ours].P50-r.figures[bare].P50) / float64(max(1, r.roundTrip.Microseconds()))
	}, ours, bare)
	rate(at(onceInsert, 64), at(doInsert, 64), 0.8)
	rate(at(doHalf, 64), at(indexHalf, 64), 2)
	rate(at(doHalf, 500), at(indexHalf, 500), 4)
	rate(at(doRepeatRemember, 64), at(doRepeat, 64), 5)
	rate(at(hotDo, 64), at(hotForUpdate, 64), 0.8)
	rate(at(hotDo, 64), at(hotCASRetry, 64), 3)
	rate(at(hotDo, 500), at(hotDo, 64), 0.8)
	rate(at(hotDoFor, 64), at(hotDo, 64), 0.85)
	rate(at(hotDoCombined, 64), at(hotForUpdate, 64), 10)
	rate(at(hotForCombined, 64), at(hotForUpdate, 64), 5)
	rate(over(hotDoCombined), over(hotForUpdate), 4)
	compare(over(hotDoCombined), over(hotForUpdate), "p99", 1, false, func(f Figures) float64 { return float64(f.P99) })
	rate(at(hotDoCombined, 64), at(hotAtomicUpdate, 64), 3)
	rate(at(hotDoCombined, 1), at(hotDo, 1), 0.97)
	rate(at(saleDoCombined, 64), at(saleForUpdate, 64), 3)
	return all
}

// Print writes the report as text.
func (r Report) Print(out io.Writer) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "case\tcallers\tops/s\tp50 µs\tp99 µs\terrors\tredis commands\tSQL statements\tCPU µs\t")
	for _, f := range r.Figures {
		fmt.Fprintf(t, "%s\t%s\t%.0f\t%d\t%d\t%d\t%.2f\t%.2f\t%.0f\t\n", f.Case, f.key().crowd(), f.Ops, f.P50, f.P99, f.Errors, f.commands, f.statements, f.micros)
	}
	_ = t.Flush()
	if r.Delay > 0 {
		fmt.Fprintf(out, "\nThe cases have a network: each of their round trips takes %v longer.", r.Delay)
	}
	fmt.Fprintf(out, "\nA round trip to Redis, for a script that writes, is %d µs. Commands, statements and the processor time of the clients are per operation.\n\n", r.RoundTrip.Microseconds())
	t = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, target := range r.Targets {
		limit, verdict := target.Judged()
		fmt.Fprintf(t, "%s\t%.2f\ttarget %s\t%s\n", target.Name, target.Value, limit, verdict)
	}
	_ = t.Flush()
	for _, f := range r.Figures {
		if f.err != "" {
			fmt.Fprintf(out, "first error of %s: %s\n", f.key(), f.err)
		}
	}
}
