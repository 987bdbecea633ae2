package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// A peer is what Belay is compared with: the best of the others in a workload.
type peer struct{ cycles, handOvers float64 }

func bestPeer(rs []result) (best peer) {
	for _, r := range rs {
		if !r.ours {
			best.cycles = max(best.cycles, r.CyclesPerSecond)
			best.handOvers = max(best.handOvers, r.HandOversPerSec)
		}
	}
	return best
}

// writeTable writes the results of one workload.
func writeTable(out io.Writer, w workload, rs []result) {
	best := bestPeer(rs)
	fmt.Fprintf(out, "\n%s, %d callers", w.name, w.callers)
	if w.processes > 1 {
		fmt.Fprintf(out, " in %d processes", w.processes)
	}
	if w.name == tryOneKey {
		fmt.Fprint(out, " at once (a cycle is one such burst)")
	}
	fmt.Fprintln(out)

	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "contender\tcycles/s\tx best peer\tp50 µs\tp99 µs\tmax µs\thand-overs/s\tx best peer\tcommands/cycle\tshares\terrors\tbroken\t")
	for _, r := range rs {
		shares := "-"
		if w.processes > 1 {
			shares = fmt.Sprintf("%.0f-%.0f %%", r.MinShare*100, r.MaxShare*100)
		}
		fmt.Fprintf(t, "%s\t%.0f\t%s\t%.0f\t%.0f\t%.0f\t%.0f\t%s\t%.2f\t%s\t%d\t%d\t\n",
			r.Contender, r.CyclesPerSecond, ratio(r.CyclesPerSecond, best.cycles), r.P50, r.P99, r.Max,
			r.HandOversPerSec, ratio(r.HandOversPerSec, best.handOvers), r.CommandsPerCycle,
			shares, r.Errors, r.ExclusionBroken)
	}
	_ = t.Flush()
	for _, r := range rs {
		if r.failure != "" {
			fmt.Fprintf(out, "  an error of %s: %s\n", r.Contender, r.failure)
		}
	}
}

func ratio(value, best float64) string {
	if best == 0 || value == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", value/best)
}
