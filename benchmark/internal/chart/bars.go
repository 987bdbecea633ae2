package chart

import (
	"fmt"
	"html"
)

// A Group is some bars side by side, with whiskers where a value has a span.
type Group struct {
	Name   string
	Values []float64 // by series; 0 = no bar
	Spans  [][2]float64
}

// Bars draws groups of bars.
func Bars(title, unit string, groups []Group) string {
	d := newDrawing(title)
	greatest := 0.0
	for _, g := range groups {
		for i, v := range g.Values {
			greatest = max(greatest, v)
			if i < len(g.Spans) {
				greatest = max(greatest, g.Spans[i][1])
			}
		}
	}
	s := linear(greatest, height-bottom, top)
	d.vertical(s, unit)
	place := float64(width-left-right) / float64(max(1, len(groups)))
	for n, g := range groups {
		d.group(s, g, left+float64(n)*place, place)
	}
	d.line("axis", left, height-bottom, width-right, height-bottom)
	return d.end()
}

func (d *drawing) group(s scale, g Group, x, place float64) {
	const inset = 0.12
	wide := place * (1 - 2*inset) / float64(max(1, len(g.Values)))
	for i, v := range g.Values {
		if v <= 0 {
			continue
		}
		at := x + place*inset + float64(i)*wide
		fmt.Fprintf(d, `<rect class="s%d" x="%.1f" y="%.1f" width="%.1f" height="%.1f"><title>%s: %s</title></rect>`,
			i, at, s.at(v), wide-2, s.at(0)-s.at(v), html.EscapeString(g.Name), short(v))
		label := s.at(v)
		if i < len(g.Spans) && g.Spans[i][1] > g.Spans[i][0] {
			middle := at + wide/2 - 1
			d.line("whisker", middle, s.at(g.Spans[i][0]), middle, s.at(g.Spans[i][1]))
			label = min(label, s.at(g.Spans[i][1]))
		}
		d.text("value middle", at+wide/2-1, label-4, fmt.Sprintf("%.0f", v))
	}
	d.text("tick middle", x+place/2, height-bottom+16, g.Name)
}
