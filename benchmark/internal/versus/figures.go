package versus

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/belaygo/belay/benchmark/internal/measure"
	"github.com/belaygo/belay/benchmark/internal/result"
)

// Figures are what a case has done: in one round, or the medians of all.
type Figures struct {
	Case   string  `json:"case"`
	C      int     `json:"c"`         // callers
	Ops    float64 `json:"ops_per_s"` // done, or refused as they should be
	P50    int64   `json:"p50_us"`
	P99    int64   `json:"p99_us"`
	Errors int64   `json:"errors"` // of all rounds

	err                  string // the first
	commands, statements float64
	micros               float64 // processor time of this process
}

// A Report is what a run has found out.
type Report struct {
	Figures   []Figures
	Targets   []result.Target
	RoundTrip time.Duration // of a script in Redis
}

// A round is what was measured within a minute.
type round struct {
	figures   map[caseKey]Figures
	roundTrip time.Duration
}

type caseKey struct {
	name    string
	callers int
}

func medians(cases []Case, rounds []round) (all []Figures) {
	for _, c := range cases {
		var f Figures
		of := func(figure func(Figures) float64) float64 {
			return measure.MedianOf(rounds, func(r round) float64 { return figure(r.figures[caseKey{c.name, c.callers}]) })
		}
		for _, r := range rounds {
			one := r.figures[caseKey{c.name, c.callers}]
			f.Errors += one.Errors
			if f.err == "" {
				f.err = one.err
			}
		}
		f.Case, f.C = c.name, c.callers
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
	rate := func(ours string, c int, theirs string, d int, limit float64) {
		name := fmt.Sprintf("%s at %d / %s at %d, ops/s", ours, c, theirs, d)
		a, b := caseKey{ours, c}, caseKey{theirs, d}
		add(name, limit, true, func(r round) float64 { return r.figures[a].Ops / max(0.1, r.figures[b].Ops) }, a, b)
	}
	rate(doInsert, 64, bareInsert, 64, 0.72)
	rate(doInsert, 500, bareInsert, 500, 1)
	ours, bare := caseKey{doInsert, 1}, caseKey{bareInsert, 1}
	add(fmt.Sprintf("%s - %s, p50 at 1, in Redis round trips", doInsert, bareInsert), 2.5, false, func(r round) float64 {
		return float64(r.figures[ours].P50-r.figures[bare].P50) / float64(max(1, r.roundTrip.Microseconds()))
	}, ours, bare)
	rate(doHalf, 64, indexHalf, 64, 2)
	rate(doHalf, 500, indexHalf, 500, 4)
	rate(doUpdate, 64, forUpdate, 64, 0.8)
	rate(doUpdate, 64, casRetry, 64, 3)
	rate(doUpdate, 500, doUpdate, 64, 0.8)
	rate(doRepeatRemember, 64, doRepeat, 64, 5)
	return all
}

// Print writes the report as text.
func (r Report) Print(out io.Writer) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "case\tcallers\tops/s\tp50 µs\tp99 µs\terrors\tredis commands\tSQL statements\tCPU µs\t")
	for _, f := range r.Figures {
		fmt.Fprintf(t, "%s\t%d\t%.0f\t%d\t%d\t%d\t%.2f\t%.2f\t%.0f\t\n", f.Case, f.C, f.Ops, f.P50, f.P99, f.Errors, f.commands, f.statements, f.micros)
	}
	_ = t.Flush()
	fmt.Fprintf(out, "\nA round trip to Redis, for a script that writes, is %d µs. Commands, statements and the processor time of the client are per operation.\n\n", r.RoundTrip.Microseconds())
	t = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, target := range r.Targets {
		limit, verdict := target.Judged()
		fmt.Fprintf(t, "%s\t%.2f\ttarget %s\t%s\n", target.Name, target.Value, limit, verdict)
	}
	_ = t.Flush()
	for _, f := range r.Figures {
		if f.err != "" {
			fmt.Fprintf(out, "first error of %s at %d: %s\n", f.Case, f.C, f.err)
		}
	}
}
