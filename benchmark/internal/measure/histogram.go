package measure

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// maxLatency is the longest that a histogram tells from others.
const maxLatency = 10 * time.Minute

// A Histogram counts latencies to three digits.
type Histogram struct{ h *hdrhistogram.Histogram }

// NewHistogram returns an empty histogram.
func NewHistogram() Histogram {
	return Histogram{hdrhistogram.New(1, maxLatency.Microseconds(), 3)}
}

// Add counts d.
func (h Histogram) Add(d time.Duration) {
	_ = h.h.RecordValue(min(max(d, 0), maxLatency).Microseconds())
}

// Merge counts all that other has counted.
func (h Histogram) Merge(other Histogram) { h.h.Merge(other.h) }

// Count is how many it has counted.
func (h Histogram) Count() int64 { return h.h.TotalCount() }

// Mean returns the mean in milliseconds.
func (h Histogram) Mean() float64 { return h.h.Mean() / 1000 }

// Quantile returns what a share q of all does not exceed, in milliseconds.
func (h Histogram) Quantile(q float64) float64 {
	return float64(h.h.ValueAtQuantile(q*100)) / 1000
}
