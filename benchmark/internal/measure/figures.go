package measure

import (
	"math"
	"slices"
	"time"
)

// Thousandths rounds to three decimals.
func Thousandths(v float64) float64 { return math.Round(v*1000) / 1000 }

// Millis is d in milliseconds, to three decimals.
func Millis(d time.Duration) float64 { return Thousandths(float64(d) / float64(time.Millisecond)) }

// Median returns the value in the middle, or the mean of the two in the middle; 0 of
// none. It sorts the values.
func Median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return 0
	}
	slices.Sort(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// MedianOf returns the median of a figure of all.
func MedianOf[T any](all []T, figure func(T) float64) float64 {
	values := make([]float64, len(all))
	for i, one := range all {
		values[i] = figure(one)
	}
	return Median(values)
}
