// Package report makes reports out of the JSON of runs.
package report

import (
	"fmt"
	"strings"

	"github.com/belaygo/belay/benchmark/internal/result"
)

// Markdown returns the report of a run as Markdown.
func Markdown(r *result.Run) string {
	var b strings.Builder
	if r.Kind == result.Sustained {
		writeSteps(&b, r)
	} else {
		writeTable1(&b, r)
	}
	writeProblems(&b, r)
	writeMachine(&b, r)
	return b.String()
}

func writeTable1(b *strings.Builder, r *result.Run) {
	fmt.Fprintf(b, "%s requests at once, %d instances, %s rows, %s: medians of %d rounds; least and greatest in brackets.\n\n",
		grouped(int64(r.Requests)), r.Instances, grouped(r.Rows), through(r), r.Rounds)
	row(b, "method", "operation", "succeeded", "intercepted", "mean ms", "requests/s", "p50", "p95", "p99",
		"first layer", "second layer", "lock failures", "errors", "events stored / received", "paper: ms", "paper: /s")
	row(b, "---", "---", "---:", "---:", "---:", "---:", "---:", "---:", "---:", "---:", "---:", "---:", "---:", "---:", "---:", "---:")
	for _, m := range r.Methods {
		p := paper(m.Method)
		row(b, name(m), m.Operation, count(m.Succeeded), count(m.Intercepted),
			fmt.Sprintf("%.0f [%.0f-%.0f]", m.Mean, m.Spread.Mean[0], m.Spread.Mean[1]),
			fmt.Sprintf("%.0f [%.0f-%.0f]", m.Throughput, m.Spread.Throughput[0], m.Spread.Throughput[1]),
			fmt.Sprintf("%.0f", m.P50), fmt.Sprintf("%.0f", m.P95), fmt.Sprintf("%.0f", m.P99),
			count(m.FirstLayer), count(m.SecondLayer), count(m.LockFailures), count(m.Errors),
			fmt.Sprintf("%d / %d", m.EventsPublished, m.EventsReceived), p.Mean(), p.Rate())
	}
	fmt.Fprintln(b)
	writeTargets(b, r)
}

func through(r *result.Run) string {
	words := "through nginx"
	if r.Balance != "nginx" {
		words = "without a load balancer"
	}
	if r.Load == "jmeter" {
		words += ", sent by JMeter"
	}
	return words
}

func name(m result.Method) string {
	if m.MasterKilled {
		return m.Method + " (a master killed)"
	}
	return m.Method
}

func writeTargets(b *strings.Builder, r *result.Run) {
	if len(r.Targets) == 0 {
		return
	}
	row(b, "ratio within the run", "measured", "to reach", "")
	row(b, "---", "---:", "---:", "---")
	for _, t := range r.Targets {
		row(b, t.Name, fmt.Sprintf("%.2f", t.Value), limit(t), verdict(t))
	}
	fmt.Fprintln(b)
}

func limit(t result.Target) string {
	if t.Least {
		return fmt.Sprintf("≥ %.2f", t.Limit)
	}
	return fmt.Sprintf("≤ %.2f", t.Limit)
}

func verdict(t result.Target) string {
	if t.Met {
		return "reached"
	}
	return "missed"
}

func writeSteps(b *strings.Builder, r *result.Run) {
	fmt.Fprintf(b, "Constant load, %d instances, %s rows, %s.\n\n", r.Instances, grouped(r.Rows), through(r))
	row(b, "method", "keys", "repeats", "users", "requests/s", "mean ms", "p50", "p95", "p99", "done", "first layer", "second layer", "sold out", "errors")
	row(b, "---", "---", "---", "---:", "---:", "---:", "---:", "---:", "---:", "---:", "---:", "---:", "---:", "---:")
	for _, s := range r.Steps {
		row(b, s.Method, s.Keys, s.Repeats, count(s.Concurrency), fmt.Sprintf("%.0f", s.Throughput),
			fmt.Sprintf("%.1f", s.Mean), fmt.Sprintf("%.1f", s.P50), fmt.Sprintf("%.1f", s.P95), fmt.Sprintf("%.1f", s.P99),
			count(s.Results["done"]), count(s.Results["busy"]), count(s.Results["duplicate"]+s.Results["intercepted"]),
			count(s.Results["sold_out"]), count(s.Results["error"]))
	}
	fmt.Fprintln(b)
}

func writeProblems(b *strings.Builder, r *result.Run) {
	if !r.Complete {
		fmt.Fprintf(b, "**The run was not complete.**\n\n")
	}
	for _, p := range r.Problems {
		fmt.Fprintf(b, "- **Fault**: %s\n", escape(p))
	}
	if len(r.Problems) > 0 {
		fmt.Fprintln(b)
	}
}

func writeMachine(b *strings.Builder, r *result.Run) {
	fmt.Fprintf(b, "%s, %s. %s. Command: `%s`\n", r.Started.Format("2 January 2006 15:04 UTC"), r.Machine, versions(r), r.Command)
}

func row(b *strings.Builder, cells ...string) {
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}

// escape keeps text from ending a cell or a line.
func escape(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace(s)
}
