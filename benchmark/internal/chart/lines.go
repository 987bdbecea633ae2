package chart

import (
	"fmt"
	"html"
	"strings"
)

// A Point of a series.
type Point struct {
	X, Y   float64
	Failed bool // drawn as a cross
}

// A Series is the points of one line, or the dots of one colour.
type Series struct {
	Name   string
	Points []Point
	Class  int // of its colour
	Large  bool
}

// Plot is what lines and dots have in common.
type Plot struct {
	Title, X, Y string
	LogX, LogY  bool
	TicksX      []float64 // empty = round values
	Mark        float64   // a moment to mark on the x axis; negative = none
	MarkName    string
}

// Lines draws a line per series.
func (p Plot) Lines(series []Series) string {
	d, x, y := p.begin(series)
	for _, s := range series {
		var path strings.Builder
		for i, pt := range s.Points {
			verb := "L"
			if i == 0 {
				verb = "M"
			}
			fmt.Fprintf(&path, "%s%.1f %.1f", verb, x.at(pt.X), y.at(pt.Y))
		}
		fmt.Fprintf(d, `<path class="line l%d%s" d="%s"><title>%s</title></path>`, s.Class, s.large(), path.String(), html.EscapeString(s.Name))
		for _, pt := range s.Points {
			d.point(s, pt, x, y)
		}
	}
	return p.finish(d, x)
}

func (s Series) large() string {
	if s.Large {
		return " large"
	}
	return ""
}

// point draws a point of a line.
func (d *drawing) point(s Series, pt Point, x, y scale) {
	title := fmt.Sprintf("<title>%s: %s, %s</title>", html.EscapeString(s.Name), short(pt.X), short(pt.Y))
	if !pt.Failed {
		fmt.Fprintf(d, `<circle class="s%d" cx="%.1f" cy="%.1f" r="3">%s</circle>`, s.Class, x.at(pt.X), y.at(pt.Y), title)
		return
	}
	fmt.Fprintf(d, `<path class="cross l%d" transform="translate(%.1f %.1f)" d="M-5 -5L5 5M-5 5L5 -5">%s</path>`, s.Class, x.at(pt.X), y.at(pt.Y), title)
}

// Dots draws a dot per point.
func (p Plot) Dots(series []Series) string {
	d, x, y := p.begin(series)
	for _, s := range series {
		radius := 2.5
		if s.Large {
			radius = 5
		}
		for _, pt := range s.Points {
			fmt.Fprintf(d, `<circle class="dot s%d" cx="%.1f" cy="%.1f" r="%.1f"/>`, s.Class, x.at(pt.X), y.at(pt.Y), radius)
		}
	}
	return p.finish(d, x)
}

func (p Plot) begin(series []Series) (d *drawing, x, y scale) {
	d = newDrawing(p.Title, height)
	leastX, mostX := span(series, func(pt Point) float64 { return pt.X })
	leastY, mostY := span(series, func(pt Point) float64 { return pt.Y })
	x = linear(max(mostX, p.Mark), left, width-right)
	if p.LogX {
		x = scale{max(leastX, 0.1), max(mostX, 2*leastX, 0.2), left + 12, width - right - 12, true}
	}
	y = linear(mostY, height-bottom, top)
	if p.LogY {
		y = logarithmic(leastY, mostY, height-bottom, top)
	}
	d.vertical(y, p.Y)
	ticks := p.TicksX
	if len(ticks) == 0 {
		ticks = x.ticks()
	}
	d.horizontal(x, ticks, p.X)
	return d, x, y
}

func (p Plot) finish(d *drawing, x scale) string {
	if p.Mark >= 0 && p.MarkName != "" {
		at := x.at(p.Mark)
		d.line("mark", at, top, at, height-bottom)
		class, dx := "marked", 5.0
		if at > (left+width-right)/2 {
			class, dx = "marked end", -5
		}
		d.text(class, at+dx, top+12, p.MarkName)
	}
	return d.end()
}

// span is the least positive and the greatest coordinate.
func span(series []Series, of func(Point) float64) (least, greatest float64) {
	for _, s := range series {
		for _, pt := range s.Points {
			v := of(pt)
			if v > 0 && (least == 0 || v < least) {
				least = v
			}
			greatest = max(greatest, v)
		}
	}
	return least, greatest
}
