package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// report prints the table, who stopped what, and the alerts.
func report(out io.Writer, answers []answer, elapsed time.Duration, t told, alertLines string) {
	var took time.Duration
	again := 0
	for _, a := range answers {
		took += a.took
		again += a.tries - 1
	}
	n := len(answers)

	printTable(out,
		"method\toperation\tthreads\tsucceeded\tintercepted\tmean ms\treq/s",
		fmt.Sprintf("Belay, one lock lost\tinsert + update\t%d\t%d\t%d\t%d\t%.0f", n, t.sold, n-t.sold-t.others,
			(took/time.Duration(n)).Milliseconds(), float64(n)/elapsed.Seconds()))
	fmt.Fprintln(out, "(all servers in this process: compare the counts, not the times)")

	fmt.Fprintln(out, "\nstopped by")
	printTable(out,
		fmt.Sprintf("  the lock\t%5d\tthe item was busy (it also turned away %d tries of clients that came again)", t.busy, again),
		fmt.Sprintf("  the database\t%5d\tthe order was there: an ordinary repeat, no alert", t.repeats),
		fmt.Sprintf("  the database\t%5d\tthe order was there, and the lock had failed: alert", t.failures),
		fmt.Sprintf("  the shop\t%5d\tsold out", t.soldOut))

	fmt.Fprintln(out, "\nguard-monitor says")
	for line := range strings.Lines(alertLines) {
		fmt.Fprint(out, fold(line, 78, "  "))
	}
	fmt.Fprintln(out)
}

func printTable(out io.Writer, rows ...string) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, row)
	}
	_ = w.Flush()
}

// fold breaks a line of text between words, so that no part is longer than
// width unless a word is.
func fold(line string, width int, indent string) string {
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(line) {
		switch {
		case column == 0:
			b.WriteString(indent)
			column = len(indent)
		case column+1+len(word) > width:
			b.WriteString("\n" + indent)
			column = len(indent)
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	b.WriteByte('\n')
	return b.String()
}
