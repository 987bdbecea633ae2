package report

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Sizes in the units of a drawing.
const (
	width, height = 520, 300
	left, right   = 64, 20
	top, bottom   = 20, 56

	barLeft, barRight = 118, 56 // room for names and values
	thick, gap        = 15, 10  // of bars
)

// A drawing is an SVG without script or outside resource. Colours come from the
// page: series n has the class sn.
type drawing struct{ strings.Builder }

func newDrawing(title string, high int) *drawing {
	d := new(drawing)
	fmt.Fprintf(d, `<svg viewBox="0 0 %d %d" role="img" aria-label="%s">`, width, high, html.EscapeString(title))
	return d
}

func (d *drawing) end() template.HTML {
	return template.HTML(d.String() + "</svg>") //nolint:gosec // every text in it is escaped
}

func (d *drawing) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(d, `<line class="%s" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, class, x1, y1, x2, y2)
}

func (d *drawing) text(class string, x, y float64, text string) {
	fmt.Fprintf(d, `<text class="%s" x="%.1f" y="%.1f">%s</text>`, class, x, y, html.EscapeString(text))
}

// A scale maps values to a span of the drawing.
type scale struct {
	least, greatest, from, to float64
	log                       bool
}

// linear returns a scale from zero.
func linear(greatest, from, to float64) scale {
	return scale{0, max(greatest*1.05, 1e-9), from, to, false}
}

// logarithmic returns a scale of whole decades.
func logarithmic(least, greatest, from, to float64) scale {
	least = math.Pow(10, math.Floor(math.Log10(max(least, 0.1))))
	greatest = math.Pow(10, math.Ceil(math.Log10(max(greatest, least*10))))
	return scale{least, greatest, from, to, true}
}

func (s scale) at(v float64) float64 {
	share := (v - s.least) / (s.greatest - s.least)
	if s.log {
		share = math.Log(max(v, s.least)/s.least) / math.Log(s.greatest/s.least)
	}
	return s.from + share*(s.to-s.from)
}

// ticks returns round values to label.
func (s scale) ticks() (ticks []float64) {
	if s.log {
		for v := s.least; v <= s.greatest*1.0001; v *= 10 {
			ticks = append(ticks, v)
		}
		return ticks
	}
	step := math.Pow(10, math.Floor(math.Log10(s.greatest/5)))
	for _, factor := range []float64{2, 2.5, 2} { // to 2, 5 or 10 times a power of ten
		if step < s.greatest/5 {
			step *= factor
		}
	}
	for i := 0.0; i*step <= s.greatest; i++ {
		ticks = append(ticks, i*step)
	}
	return ticks
}

// A group is the bars of one name.
type group struct {
	name   string
	values [2]float64 // measured here, and the paper's; 0 = no bar
	span   [2]float64 // of the first value: a whisker; the zero value = none
}

// bars draws groups of horizontal bars. A bar that would make all others too small
// to compare is cut short, which a notch shows.
func bars(title, unit string, groups []group) template.HTML {
	step := float64(len(group{}.values)*thick + gap)
	foot := top + step*float64(len(groups))
	d := newDrawing(title, int(foot)+bottom)
	s := linear(longest(groups), barLeft, width-barRight)
	for _, v := range s.ticks() {
		d.line("grid", s.at(v), top, s.at(v), foot)
		d.text("tick middle", s.at(v), foot+18, short(v))
	}
	d.text("label middle", (barLeft+width-barRight)/2, foot+bottom-10, unit)
	for i, g := range groups {
		d.group(s, g, top+gap/2+step*float64(i))
	}
	d.line("axis", barLeft, top, barLeft, foot)
	return d.end()
}

// longest is the value that the axis has to reach: the greatest, unless it is more
// than twice the next.
func longest(groups []group) float64 {
	all := []float64{0, 0, 0}
	for _, g := range groups {
		all = append(all, max(g.values[0], g.span[1]), g.values[1])
	}
	slices.Sort(all)
	next, greatest := all[len(all)-2], all[len(all)-1]
	if next > 0 && all[len(all)-3] > 0 && greatest > 2*next {
		return next
	}
	return greatest
}

func (d *drawing) group(s scale, g group, y float64) {
	d.text("name end", barLeft-8, y+thick+4, g.name)
	for i, v := range g.values {
		if v <= 0 {
			continue
		}
		y := y + float64(i*thick)
		end := min(s.at(v), s.to)
		fmt.Fprintf(d, `<rect class="s%d" x="%.1f" y="%.1f" width="%.1f" height="%d"><title>%s: %s</title></rect>`,
			i, s.from, y, end-s.from, thick-2, html.EscapeString(g.name), short(v))
		switch {
		case s.at(v) > s.to:
			d.line("notch", end-14, y+thick, end-8, y-2)
			d.line("notch", end-8, y+thick, end-2, y-2)
		case i == 0 && g.span[1] > g.span[0]:
			middle, most := y+(thick-2)/2.0, min(s.at(g.span[1]), s.to)
			d.line("whisker", s.at(g.span[0]), middle, most, middle)
			end = max(end, most)
		}
		decimals := 0
		if v < 20 {
			decimals = 2
		}
		d.text("value", end+4, y+thick-4, strconv.FormatFloat(v, 'f', decimals, 64))
	}
}

type point struct{ x, y float64 }

// A series is the dots of one colour.
type series struct {
	name   string
	class  int // of its colour
	large  bool
	points []point
}

// A plot is drawn as dots. Its axis of y is logarithmic.
type plot struct {
	title, x, y string
	killed      float64 // when a master was killed, on the axis of x; negative = never
}

func (p plot) draw(all []series) template.HTML {
	d := newDrawing(p.title, height)
	x, y := p.scales(all)
	for _, v := range y.ticks() {
		d.line("grid", left, y.at(v), width-right, y.at(v))
		d.text("tick end", left-6, y.at(v)+4, short(v))
	}
	fmt.Fprintf(d, `<text class="label" transform="translate(15 %d) rotate(-90)">%s</text>`, (top+height-bottom)/2, html.EscapeString(p.y))
	d.line("axis", left, height-bottom, width-right, height-bottom)
	for _, v := range x.ticks() {
		d.text("tick middle", x.at(v), height-bottom+18, short(v))
	}
	d.text("label middle", (left+width-right)/2, height-8, p.x)
	for _, s := range all {
		d.series(s, x, y)
	}
	if p.killed >= 0 {
		at, class, dx := x.at(p.killed), "marked", 5.0
		if at > (left+width-right)/2 {
			class, dx = "marked end", -5
		}
		d.line("mark", at, top, at, height-bottom)
		d.text(class, at+dx, top+12, "master killed")
	}
	return d.end()
}

func (p plot) scales(all []series) (x, y scale) {
	least, most := math.Inf(1), point{x: p.killed}
	for _, s := range all {
		for _, pt := range s.points {
			most = point{max(most.x, pt.x), max(most.y, pt.y)}
			if pt.y > 0 {
				least = min(least, pt.y)
			}
		}
	}
	return linear(most.x, left, width-right), logarithmic(min(least, most.y), most.y, height-bottom, top)
}

func (d *drawing) series(s series, x, y scale) {
	radius := 2.5
	if s.large {
		radius = 5
	}
	for _, pt := range s.points {
		fmt.Fprintf(d, `<g transform="translate(%.1f %.1f)"><title>%s: %s, %s</title><circle class="dot s%d" r="%.1f"/></g>`,
			x.at(pt.x), y.at(pt.y), html.EscapeString(s.name), short(pt.x), short(pt.y), s.class, radius)
	}
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
