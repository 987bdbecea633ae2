package measure

import (
	"math"
	"time"
)

// Thousandths rounds to three decimals.
func Thousandths(v float64) float64 { return math.Round(v*1000) / 1000 }

// Millis is d in milliseconds, to three decimals.
func Millis(d time.Duration) float64 { return Thousandths(float64(d) / float64(time.Millisecond)) }
