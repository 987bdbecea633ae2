package chaos_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// A series is what one process has in use of one kind, at each of its samples.
type series struct {
	name  string
	unit  string
	limit float64      // growth for 1,000 operations that must be found
	at    [][2]float64 // operations in thousands, and how much
}

// A trend is the line through a series by least squares. With 99 percent confidence its
// slope is no further than margin from the true one.
type trend struct{ slope, margin float64 }

// A finding is what a series shows.
type finding string

const (
	steady finding = "steady"
	leak   finding = "grows"
	noisy  finding = "too noisy to tell"
)

// The judgement of a series leaves out the beginning, when pools fill, and takes the least
// value of each of its windows: faults and work make peaks, and only what stays raises the
// least.
const (
	warmUp     = 0.2
	windows    = 40
	minWindows = 20
)

// judge tells whether a series grows. It does if the line through it rises, certainly, by
// more than a quarter of the limit, and each half of it rises by itself: a step, as of a
// pool that has grown once, is in one half only. A series that does not show that, and may
// yet grow by the limit in both halves, is too noisy.
func (s series) judge() (trend, finding) {
	points := s.floors()
	if len(points) < minWindows {
		return trend{math.NaN(), math.NaN()}, noisy
	}
	all := fit(points)
	half := len(points) / 2
	first, second := fit(points[:half]), fit(points[half:])
	switch {
	case all.slope-all.margin > s.limit/4 && first.slope-first.margin > 0 && second.slope-second.margin > 0:
		return all, leak
	case min(all.slope+all.margin, first.slope+first.margin, second.slope+second.margin) >= s.limit:
		return all, noisy
	}
	return all, steady
}

// floors returns the least value of each window behind the warm-up.
func (s series) floors() (points [][2]float64) {
	kept := s.at[int(warmUp*float64(len(s.at))):]
	n := min(windows, len(kept))
	for i := range n {
		window := kept[i*len(kept)/n : (i+1)*len(kept)/n]
		points = append(points, slices.MinFunc(window, func(a, b [2]float64) int {
			return int(math.Copysign(1, a[1]-b[1]))
		}))
	}
	return points
}

// fit fits a line to points.
func fit(points [][2]float64) trend {
	n := float64(len(points))
	var mx, my float64
	for _, p := range points {
		mx, my = mx+p[0]/n, my+p[1]/n
	}
	var sxx, sxy float64
	for _, p := range points {
		sxx += (p[0] - mx) * (p[0] - mx)
		sxy += (p[0] - mx) * (p[1] - my)
	}
	slope := sxy / sxx
	var rest float64
	for _, p := range points {
		d := p[1] - my - slope*(p[0]-mx)
		rest += d * d
	}
	return trend{slope, student99(n-2) * math.Sqrt(rest/(n-2)/sxx)}
}

// student99 is the two-sided 99 percent quantile of Student's t distribution, to two
// places from 8 degrees of freedom on (Cornish and Fisher).
func student99(df float64) float64 {
	const z = 2.575829
	z3 := z * z * z
	z5, z7 := z3*z*z, z3*z3*z
	return z + (z3+z)/(4*df) + (5*z5+16*z3+3*z)/(96*df*df) + (3*z7+19*z5+17*z3-15*z)/(384*df*df*df)
}

func TestStudent(t *testing.T) {
	for df, want := range map[float64]float64{8: 3.355, 18: 2.878, 38: 2.712, 1e9: 2.576} {
		if got := student99(df); math.Abs(got-want) > 0.004 {
			t.Errorf("%v degrees of freedom: %.4f, want %.3f", df, got, want)
		}
	}
}

func TestFit(t *testing.T) {
	var line [][2]float64
	for i := range 20 {
		line = append(line, [2]float64{float64(i), 3 + 2*float64(i)})
	}
	if got := fit(line); math.Abs(got.slope-2) > 1e-9 || got.margin > 1e-9 {
		t.Errorf("a line of slope 2: %+v", got)
	}
	// By hand: x 0..3, y 1 3 2 4: slope 0.8, rest 1.8, sxx 5.
	if got := fit([][2]float64{{0, 1}, {1, 3}, {2, 2}, {3, 4}}); math.Abs(got.slope-0.8) > 1e-9 {
		t.Errorf("slope %v, want 0.8", got.slope)
	}
}

// TestLeakIsFound judges made-up series of goroutines, as runs of ten minutes and of two
// hours have them: one of a sample a second.
func TestLeakIsFound(t *testing.T) {
	const tries = 20
	for _, seconds := range []int{600, 7200} {
		for _, tt := range []struct {
			name  string
			grows func(r *rand.Rand, ops float64) float64 // in thousands
			want  finding
		}{
			{"nothing", func(*rand.Rand, float64) float64 { return 0 }, steady},
			{"one for 1,000 operations", func(_ *rand.Rand, ops float64) float64 { return math.Floor(ops) }, leak},
			{"one for 500", func(_ *rand.Rand, ops float64) float64 { return math.Floor(2 * ops) }, leak},
			{"one for 20,000", func(_ *rand.Rand, ops float64) float64 { return math.Floor(ops / 20) }, steady},
			{"a pool that grows by 8 once, in the middle", func(_ *rand.Rand, ops float64) float64 {
				return 8 * math.Floor(min(1, ops/(20*float64(seconds)/600/2)))
			}, steady},
			{"faults that take 200 for five seconds", func(r *rand.Rand, ops float64) float64 {
				if math.Mod(ops, 2) < 0.2 {
					return 200 * r.Float64()
				}
				return 0
			}, steady},
			{"one for 1,000 behind such faults", func(r *rand.Rand, ops float64) float64 {
				if math.Mod(ops, 2) < 0.2 {
					return math.Floor(ops) + 200*r.Float64()
				}
				return math.Floor(ops)
			}, leak},
			{"something that falls", func(_ *rand.Rand, ops float64) float64 { return -math.Floor(ops) }, steady},
			{"noise of hundreds that lasts", func(r *rand.Rand, _ float64) float64 { return 1e5 * r.Float64() }, noisy},
		} {
			t.Run(fmt.Sprintf("%s in %d s", tt.name, seconds), func(t *testing.T) {
				got := make(map[finding]int)
				for seed := range uint64(tries) {
					r := rand.New(rand.NewPCG(seed, 0))
					s := series{limit: 1}
					for i := range seconds {
						ops := 40.0 * float64(i) / 1000
						s.at = append(s.at, [2]float64{ops, 60 + float64(r.IntN(24)) + tt.grows(r, ops)})
					}
					_, f := s.judge()
					got[f]++
				}
				least := tries
				if tt.want == noisy { // of a hundred lines one may be off
					least = tries * 9 / 10
				}
				if got[tt.want] < least || tt.want != leak && got[leak] > 0 {
					t.Errorf("found %v, want %q", got, tt.want)
				}
			})
		}
	}
	short := series{limit: 1, at: make([][2]float64, minWindows)}
	if _, f := short.judge(); f != noisy {
		t.Errorf("a series of a few samples is %q", f)
	}
}
