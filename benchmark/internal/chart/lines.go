package chart

import (
	"fmt"
	"html"
	"strings"
)

// A Series is the points of one line, or the dots of one colour.
type Series struct {
	Name   string
	Points [][2]float64
	Class  int // of its colour
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
			fmt.Fprintf(&path, "%s%.1f %.1f", verb, x.at(pt[0]), y.at(pt[1]))
		}
		fmt.Fprintf(d, `<path class="line l%d" d="%s"><title>%s</title></path>`, s.Class, path.String(), html.EscapeString(s.Name))
		for _, pt := range s.Points {
			fmt.Fprintf(d, `<circle class="s%d" cx="%.1f" cy="%.1f" r="3"><title>%s: %s, %s</title></circle>`,
				s.Class, x.at(pt[0]), y.at(pt[1]), html.EscapeString(s.Name), short(pt[0]), short(pt[1]))
		}
	}
	return p.finish(d, x)
}

// Dots draws a dot per point.
func (p Plot) Dots(series []Series) string {
	d, x, y := p.begin(series)
	for _, s := range series {
		for _, pt := range s.Points {
			fmt.Fprintf(d, `<circle class="dot s%d" cx="%.1f" cy="%.1f" r="2.2"/>`, s.Class, x.at(pt[0]), y.at(pt[1]))
		}
	}
	return p.finish(d, x)
}

func (p Plot) begin(series []Series) (d *drawing, x, y scale) {
	d = newDrawing(p.Title)
	leastX, mostX := span(series, 0)
	leastY, mostY := span(series, 1)
	mostX = max(mostX, p.Mark)
	x = linear(mostX, left, width-right)
	if p.LogX {
		x = logarithmic(leastX, mostX, left, width-right)
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
		d.text("marked", at+5, top+12, p.MarkName)
	}
	return d.end()
}

// span is the least positive and the greatest coordinate.
func span(series []Series, axis int) (least, greatest float64) {
	for _, s := range series {
		for _, pt := range s.Points {
			v := pt[axis]
			if v > 0 && (least == 0 || v < least) {
				least = v
			}
			greatest = max(greatest, v)
		}
	}
	return least, greatest
}
