// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	_ "embed"
	"strconv"
	"strings"
	"text/template"
)

//go:embed chart.svg.tmpl
var source string

var image = template.Must(template.New("chart").Parse(source))

// These constants are the sizes of an image, in pixels.
const (
	width     = 688 // without the margins
	margin    = 16
	labels    = 176 // width of the names of the contenders
	values    = 80  // width of the values at the ends of the longest bars
	head      = 40  // height of the title
	panelHead = 28  // height of the title of a panel
	rowHeight = 26
	barHeight = 16
	panelGap  = 16
)

// panel is a part of an image: one leg of the benchmark.
type panel struct {
	Title string
	Y     int // baseline of the title
	Bars  []bar
}

type bar struct {
	Label, Value string
	Y            int // upper edge of the bar
	Width        float64
	Ours         bool
}

// render returns an SVG image.
func render(c chart, figures map[string]float64) ([]byte, error) {
	var panels []panel
	y := head
	for _, leg := range c.legs {
		p := panel{Title: leg.label, Y: y + 16}
		longest := 0.0
		for _, contender := range c.contenders {
			longest = max(longest, figures[c.unit(contender, leg)])
		}
		y += panelHead
		for i, contender := range c.contenders {
			value := figures[c.unit(contender, leg)]
			length := 0.0
			if longest > 0 {
				length = value / longest * (width - labels - values)
			}
			p.Bars = append(p.Bars, bar{Label: contender.label, Value: format(value), Y: y, Width: length, Ours: i == 0})
			y += rowHeight
		}
		panels = append(panels, p)
		y += panelGap
	}
	var out bytes.Buffer
	err := image.Execute(&out, map[string]any{
		"Title": c.title, "Width": width + 2*margin, "Height": y - panelGap + 2*margin, "Margin": margin, "Labels": labels, "BarHeight": barHeight, "Panels": panels,
	})
	return out.Bytes(), err
}

// format returns a value with at most three significant digits, or as an integer with separated thousands.
func format(value float64) string {
	if value < 100 {
		return strconv.FormatFloat(value, 'g', 3, 64)
	}
	digits := strconv.FormatFloat(value, 'f', 0, 64)
	var text strings.Builder
	for i, digit := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			text.WriteByte(',')
		}
		text.WriteRune(digit)
	}
	return text.String()
}
