package measure

import (
	"encoding/json"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// maxLatency is the longest duration that a Histogram distinguishes from longer ones.
const maxLatency = 10 * time.Minute

// A Histogram counts durations to three digits. The zero value is empty. As JSON it
// is {"nanoseconds": number, ...}. It is not safe for concurrent use.
type Histogram struct{ h *hdrhistogram.Histogram }

func (h *Histogram) get() *hdrhistogram.Histogram {
	if h.h == nil {
		h.h = hdrhistogram.New(1, int64(maxLatency), 3)
	}
	return h.h
}

// Add counts d.
func (h *Histogram) Add(d time.Duration) { h.add(d, 1) }

func (h *Histogram) add(d time.Duration, n int64) {
	_ = h.get().RecordValues(int64(min(max(d, 0), maxLatency)), n) // which is within the bounds
}

// Merge counts everything that other has counted.
func (h *Histogram) Merge(other *Histogram) {
	if other.h != nil {
		h.get().Merge(other.h)
	}
}

// Count is how many durations were counted.
func (h *Histogram) Count() int64 { return h.get().TotalCount() }

// Mean returns the mean, 0 of none.
func (h *Histogram) Mean() time.Duration { return time.Duration(h.get().Mean()) }

// Quantile returns the duration that a share q of all does not exceed, 0 of none.
func (h *Histogram) Quantile(q float64) time.Duration {
	return time.Duration(h.get().ValueAtQuantile(q * 100))
}

// MarshalJSON implements json.Marshaler.
func (h Histogram) MarshalJSON() ([]byte, error) {
	counts := make(map[int64]int64)
	for _, bar := range h.get().Distribution() {
		if bar.Count > 0 {
			counts[bar.From+(bar.To-bar.From)/2] = bar.Count
		}
	}
	return json.Marshal(counts)
}

// UnmarshalJSON implements json.Unmarshaler. It adds to what was counted before.
func (h *Histogram) UnmarshalJSON(text []byte) error {
	var counts map[time.Duration]int64
	err := json.Unmarshal(text, &counts)
	for d, n := range counts {
		h.add(d, n)
	}
	return err
}
