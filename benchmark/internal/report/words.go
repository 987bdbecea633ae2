package report

import (
	"fmt"
	"strconv"
	"strings"
)

// published is a line of the paper's table 1: Wang Lei, Meng Limin, "Idempotent
// Design of Distributed Systems Based on High Concurrency", Computer Measurement
// & Control 2022, 30(3).
type published struct{ meanMS, perSecond float64 }

var publishedTable = map[string]published{
	"pessimistic":  {1135, 302.8},
	"optimistic":   {988, 316.8},
	"unique-index": {1050, 295.5},
	"redis-lock":   {794, 323.2},
	"belay":        {768, 323.7}, // the paper's own: an improved Redisson lock, one master stopped
}

func paper(method string) published { return publishedTable[method] }

// Mean is the mean response in ms, as words.
func (p published) Mean() string { return orDash(p.meanMS, "%.0f") }

// Rate is the throughput, as words.
func (p published) Rate() string { return orDash(p.perSecond, "%.1f") }

func orDash(v float64, format string) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf(format, v)
}

func count(n int) string { return strconv.Itoa(n) }

// grouped writes a number with commas.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}
