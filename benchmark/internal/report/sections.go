package report

import (
	"fmt"
	"strings"

	"github.com/belaygo/belay/benchmark/internal/result"
)

// A section is a table and the text before it. Either may be missing.
type section struct {
	Text string
	Rows [][]string // the first is the head
}

// add adds a row. Numbers are written without decimals.
func (s *section) add(cells ...any) {
	var row []string
	for _, c := range cells {
		if v, ok := c.(float64); ok {
			c = fmt.Sprintf("%.0f", v)
		}
		row = append(row, fmt.Sprint(c))
	}
	s.Rows = append(s.Rows, row)
}

// sections are what the Markdown and the page have in common.
func sections(r *result.Run) []section {
	figures := section{Text: fmt.Sprintf("%s requests at once, %d instances, %s rows, %s: medians of %d rounds; least and greatest in brackets.",
		grouped(int64(r.Requests)), r.Instances, grouped(r.Rows), through(r), r.Rounds)}
	figures.add("method", "operation", "succeeded", "intercepted", "mean ms", "requests/s", "p50", "p95", "p99", "paper: ms", "paper: /s")
	layers := section{Text: "Who turned requests away, and what went wrong; from the lock failures on, sums over all rounds:"}
	layers.add("method", "first layer", "second layer", "sold out", "lock failures caught", "duplicates", "oversold", "lost", "errors", "events stored / received")
	for _, m := range r.Methods {
		name := m.Method
		if m.Killed {
			name += " (a master killed)"
		}
		mean, rate, p := m.Spread.Mean, m.Spread.Throughput, paper(m.Method)
		figures.add(name, m.Operation, m.Succeeded, m.Intercepted,
			fmt.Sprintf("%.0f [%.0f-%.0f]", m.Mean, mean[0], mean[1]), fmt.Sprintf("%.0f [%.0f-%.0f]", m.Throughput, rate[0], rate[1]),
			m.P50, m.P95, m.P99, orDash("%.0f", p.meanMS), orDash("%.1f", p.perSecond))
		layers.add(name, m.FirstLayer, m.SecondLayer, m.SoldOut, m.LockFailures,
			m.Duplicates, m.Oversold, m.Lost, m.Errors, fmt.Sprintf("%d / %d", m.Published, m.Received))
	}
	return append([]section{figures, layers, processors(r)}, targets(r)...)
}

func targets(r *result.Run) []section {
	if len(r.Targets) == 0 {
		return nil
	}
	var s section
	s.add("ratio within a round, median of the rounds", "measured", "to reach", "")
	for _, t := range r.Targets {
		limit, verdict := t.Judged()
		s.add(t.Name, fmt.Sprintf("%.2f", t.Value), limit, verdict)
	}
	return []section{s}
}

// processors is where the time of a round went.
func processors(r *result.Run) section {
	s := section{Text: "Processor time of a round, ms. All processes share the machine's cores, so this is what bounds the throughput. " +
		"What a master that was killed had used is not in it, nor is JMeter."}
	s.add("method", "load", "nginx", "instances", "redis", "mariadb", "sum")
	for _, m := range r.Methods {
		c := m.CPU
		s.add(m.Method, c["load"], c["nginx"], c["instances"], c["redis"], c["mariadb"],
			c["load"]+c["nginx"]+c["instances"]+c["redis"]+c["mariadb"])
	}
	return s
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

// published is a line of the paper's table 1: Wang Lei, Meng Limin, "Idempotent
// Design of Distributed Systems Based on High Concurrency", Computer Measurement
// & Control 2022, 30(3).
type published struct{ meanMS, perSecond float64 }

// paper returns what the paper has of a method, zero if it has nothing.
func paper(method string) published {
	return map[string]published{
		"pessimistic":  {1135, 302.8},
		"optimistic":   {988, 316.8},
		"unique-index": {1050, 295.5},
		"redis-lock":   {794, 323.2},
		"belay":        {768, 323.7}, // the paper's own: an improved Redisson lock, one master stopped
	}[method]
}

func orDash(format string, v float64) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf(format, v)
}

// grouped writes a number with commas.
func grouped(n int64) string {
	var b strings.Builder
	digits := fmt.Sprint(n)
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}
