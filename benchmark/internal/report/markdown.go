// Package report makes reports out of the JSON of runs.
package report

import (
	"fmt"
	"strings"

	"github.com/belaygo/belay/benchmark/internal/result"
	"github.com/belaygo/belay/benchmark/internal/shop"
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
	row(b, "method", "operation", "succeeded", "intercepted", "mean ms", "requests/s", "p50", "p95", "p99", "paper: ms", "paper: /s")
	row(b, "---", "---", "---:", "---:", "---:", "---:", "---:", "---:", "---:", "---:", "---:")
	for _, m := range r.Methods {
		p := paper(m.Method)
		row(b, name(m), m.Operation, count(m.Succeeded), count(m.Intercepted),
			fmt.Sprintf("%.0f [%.0f-%.0f]", m.Mean, m.Spread.Mean[0], m.Spread.Mean[1]),
			fmt.Sprintf("%.0f [%.0f-%.0f]", m.Throughput, m.Spread.Throughput[0], m.Spread.Throughput[1]),
			fmt.Sprintf("%.0f", m.P50), fmt.Sprintf("%.0f", m.P95), fmt.Sprintf("%.0f", m.P99), p.Mean(), p.Rate())
	}
	fmt.Fprintf(b, "\nWho turned requests away, and what went wrong; from the lock failures on, sums over all rounds:\n\n")
	row(b, "method", "first layer", "second layer", "sold out", "lock failures caught", "duplicates", "oversold", "lost", "errors", "events stored / received")
	row(b, "---", "---:", "---:", "---:", "---:", "---:", "---:", "---:", "---:", "---:")
	for _, m := range r.Methods {
		row(b, name(m), count(m.FirstLayer), count(m.SecondLayer), count(m.SoldOut), count(m.LockFailures),
			count(m.Duplicates), count(m.Oversold), count(m.Lost), count(m.Errors),
			fmt.Sprintf("%d / %d", m.EventsPublished, m.EventsReceived))
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
	row(b, "ratio within a round, median of the rounds", "measured", "to reach", "")
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

// writeSteps writes a table per load, with a column per number of users.
func writeSteps(b *strings.Builder, r *result.Run) {
	fmt.Fprintf(b, "Constant load, %s a step, %d instances, %s rows, %s: requests/s, and in brackets the p99 in ms. "+
		"Each user asks again when he has his answer, so that a moment without answers is one slow request of each.\n",
		r.Settings["time of a step"], r.Instances, grouped(r.Rows), through(r))
	for _, k := range loads(r) {
		fmt.Fprintf(b, "\n%s:\n\n", k)
		head, rule := []string{"users"}, []string{"---"}
		for _, n := range k.users() {
			head, rule = append(head, grouped(int64(n))), append(rule, "---:")
		}
		row(b, head...)
		row(b, rule...)
		for _, method := range k.methods() {
			cells := []string{method}
			for _, n := range k.users() {
				cells = append(cells, cell(k.step(method, n)))
			}
			row(b, cells...)
		}
	}
	fmt.Fprintln(b)
}

func cell(s result.Step, measured bool) string {
	if !measured {
		return ""
	}
	text := fmt.Sprintf("%.0f [%.*f]", s.Throughput, decimals(s.P99), s.P99)
	if n := s.Results["error"]; n > 0 {
		text += fmt.Sprintf(", %d errors", n)
	}
	return text
}

func decimals(v float64) int {
	if v < 10 {
		return 1
	}
	return 0
}

func secondLayer(s result.Step) (n int) {
	for kind, count := range s.Results {
		if shop.Result(kind).BySecondLayer() {
			n += count
		}
	}
	return n
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
	fmt.Fprintf(b, "%s, %s. %s. Command: `%s`\n", r.Started.Format("2 January 2006 15:04 UTC"), r.Machine, r.Machine.Software(), r.Command)
}

func row(b *strings.Builder, cells ...string) {
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}

// escape keeps text from ending a cell or a line.
func escape(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace(s)
}
