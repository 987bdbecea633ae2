package chart

import (
	"fmt"
	"html"
	"slices"
	"strconv"
)

// A Group is the bars of one name, with whiskers where a value has a span.
type Group struct {
	Name   string
	Values []float64 // by series; 0 = no bar
	Spans  [][2]float64
}

const (
	barLeft  = 118 // room for names
	barRight = 56  // room for values
	thick    = 15
	gap      = 10
)

// Bars draws groups of horizontal bars. A bar that would make all others too
// small to compare is cut short, which a notch shows.
func Bars(title, unit string, groups []Group) string {
	high := top + bottom
	for _, g := range groups {
		high += len(g.Values)*thick + gap
	}
	d := newDrawing(title, high)
	s := linear(longest(groups), barLeft, width-barRight)
	for _, v := range s.ticks() {
		d.line("grid", s.at(v), top, s.at(v), float64(high-bottom))
		d.text("tick middle", s.at(v), float64(high-bottom+18), short(v))
	}
	d.text("label middle", (barLeft+width-barRight)/2, float64(high-10), unit)
	y := float64(top)
	for _, g := range groups {
		d.group(s, g, y+gap/2)
		y += float64(len(g.Values)*thick + gap)
	}
	d.line("axis", barLeft, top, barLeft, float64(high-bottom))
	return d.end()
}

// longest is the value that the axis has to reach: the greatest, unless it is
// more than twice the next.
func longest(groups []Group) float64 {
	var all []float64
	for _, g := range groups {
		for i, v := range g.Values {
			if i < len(g.Spans) {
				v = max(v, g.Spans[i][1])
			}
			all = append(all, v)
		}
	}
	slices.Sort(all)
	n := len(all)
	if n == 0 {
		return 0
	}
	if n > 2 && all[n-2] > 0 && all[n-1] > 2*all[n-2] {
		return all[n-2]
	}
	return all[n-1]
}

func (d *drawing) group(s scale, g Group, y float64) {
	d.text("name end", barLeft-8, y+float64(len(g.Values)*thick)/2+4, g.Name)
	for i, v := range g.Values {
		if v <= 0 {
			continue
		}
		at := y + float64(i*thick)
		end := min(s.at(v), s.to)
		fmt.Fprintf(d, `<rect class="s%d" x="%.1f" y="%.1f" width="%.1f" height="%d"><title>%s: %s</title></rect>`,
			i, s.from, at, end-s.from, thick-2, html.EscapeString(g.Name), short(v))
		if s.at(v) > s.to {
			d.line("notch", end-14, at+thick, end-8, at-2)
			d.line("notch", end-8, at+thick, end-2, at-2)
		} else if i < len(g.Spans) && g.Spans[i][1] > g.Spans[i][0] {
			middle := at + (thick-2)/2.0
			end = min(s.at(g.Spans[i][1]), s.to)
			d.line("whisker", s.at(g.Spans[i][0]), middle, end, middle)
			end = max(end, s.at(v))
		}
		d.text("value", end+4, at+thick-4, label(v))
	}
}

// label is a value beside its bar.
func label(v float64) string {
	if v < 20 {
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}
