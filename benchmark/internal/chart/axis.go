// Package chart draws small charts as SVG, without script or outside resource.
// Colours come from the page: series n has the class sn.
package chart

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// Sizes in the units of the drawing.
const (
	width, height = 520, 300
	left, right   = 64, 20
	top, bottom   = 20, 56
)

// scale maps values to a span of the drawing.
type scale struct {
	least, greatest float64
	from, to        float64
	log             bool
}

func (s scale) at(v float64) float64 {
	least, greatest := s.least, s.greatest
	if s.log {
		v, least, greatest = math.Log10(max(v, s.least)), math.Log10(least), math.Log10(greatest)
	}
	if greatest == least {
		return s.from
	}
	return s.from + (v-least)/(greatest-least)*(s.to-s.from)
}

// ticks returns round values to label.
func (s scale) ticks() []float64 {
	var ticks []float64
	if s.log {
		for v := math.Pow(10, math.Floor(math.Log10(s.least))); v <= s.greatest*1.0001; v *= 10 {
			if v >= s.least*0.9999 {
				ticks = append(ticks, v)
			}
		}
		return ticks
	}
	step := niceStep((s.greatest - s.least) / 5)
	for v := math.Ceil(s.least/step) * step; v <= s.greatest+step/1000; v += step {
		ticks = append(ticks, v)
	}
	return ticks
}

// niceStep is 1, 2 or 5 times a power of ten, at least v.
func niceStep(v float64) float64 {
	if v <= 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if v <= m*power {
			return m * power
		}
	}
	return 10 * power
}

// linear is a scale from zero to a little above the greatest value.
func linear(greatest, from, to float64) scale {
	if greatest <= 0 {
		greatest = 1
	}
	return scale{0, greatest * 1.05, from, to, false}
}

// logarithmic is a scale of whole decades.
func logarithmic(least, greatest, from, to float64) scale {
	if least <= 0 {
		least = 0.1
	}
	low := math.Pow(10, math.Floor(math.Log10(least)))
	high := math.Pow(10, math.Ceil(math.Log10(max(greatest, low*10))))
	return scale{low, high, from, to, true}
}

// drawing is an SVG in the making.
type drawing struct{ strings.Builder }

func newDrawing(title string, high int) *drawing {
	d := new(drawing)
	fmt.Fprintf(d, `<svg viewBox="0 0 %d %d" role="img" aria-label="%s">`, width, high, html.EscapeString(title))
	return d
}

func (d *drawing) end() string { return d.String() + "</svg>" }

func (d *drawing) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(d, `<line class="%s" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, class, x1, y1, x2, y2)
}

func (d *drawing) text(class string, x, y float64, text string) {
	fmt.Fprintf(d, `<text class="%s" x="%.1f" y="%.1f">%s</text>`, class, x, y, html.EscapeString(text))
}

// vertical draws the axis of the values.
func (d *drawing) vertical(s scale, label string) {
	for _, v := range s.ticks() {
		y := s.at(v)
		d.line("grid", left, y, width-right, y)
		d.text("tick end", left-6, y+4, short(v))
	}
	fmt.Fprintf(d, `<text class="label" transform="translate(15 %d) rotate(-90)">%s</text>`, (top+height-bottom)/2, html.EscapeString(label))
}

// horizontal draws the axis at the foot, with a label per tick.
func (d *drawing) horizontal(s scale, ticks []float64, label string) {
	d.line("axis", left, height-bottom, width-right, height-bottom)
	for _, v := range ticks {
		d.text("tick middle", s.at(v), height-bottom+18, short(v))
	}
	d.text("label middle", (left+width-right)/2, height-8, label)
}

// short writes a value as briefly as it can.
func short(v float64) string {
	switch {
	case v >= 1e6:
		return strconv.FormatFloat(v/1e6, 'g', 4, 64) + "M"
	case v >= 1e3:
		return strconv.FormatFloat(v/1e3, 'g', 4, 64) + "k"
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
