// SPDX-License-Identifier: Apache-2.0

package race

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// lap contains the time and the number of requests that a contender needed for a leg.
type lap struct {
	took    time.Duration
	calls   int
	objects int
}

// Result contains the laps of all contenders.
type Result struct {
	names []string
	laps  map[string]*[legs][]lap
}

func newResult(contenders []Contender) *Result {
	r := &Result{laps: map[string]*[legs][]lap{}}
	for _, c := range contenders {
		r.names = append(r.names, c.Name)
		r.laps[c.Name] = &[legs][]lap{}
	}
	return r
}

func (r *Result) add(name string, leg Leg, got lap) {
	r.laps[name][leg] = append(r.laps[name][leg], got)
}

// PerSecond returns the number of objects that a contender deployed per second, as the median of its rounds.
func (r *Result) PerSecond(name string, leg Leg) float64 { return Median(r.getSpeeds(name, leg)) }

// getSpeeds returns the number of objects per second of each round.
func (r *Result) getSpeeds(name string, leg Leg) []float64 {
	var speeds []float64
	for _, l := range r.laps[name][leg] {
		speeds = append(speeds, float64(l.objects)/l.took.Seconds())
	}
	return speeds
}

// Median returns the median of the values. It is not defined for an empty list.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// Calls returns the number of requests that a contender needed per object.
func (r *Result) Calls(name string, leg Leg) float64 {
	sum, objects := 0, 0
	for _, l := range r.laps[name][leg] {
		sum += l.calls
		objects += l.objects
	}
	return float64(sum) / float64(objects)
}

// Ratio returns how many times faster the first contender was than the second contender, as the median of the rounds.
// The speed of the machine may change from round to round, so each round is compared with itself.
func (r *Result) Ratio(name, other string, leg Leg) float64 {
	ratios, others := r.getSpeeds(name, leg), r.getSpeeds(other, leg)
	for round := range ratios {
		ratios[round] /= others[round]
	}
	return Median(ratios)
}

// Report reports the objects per second and the requests per object of each contender and leg. A unit such as
// Flux/no-op-objects/s consists of the contender, the leg and the measure, so that hack/charts can draw the output of a
// benchmark.
func (r *Result) Report(b *testing.B) {
	b.Helper()
	for _, name := range r.names {
		for leg := range legs {
			b.ReportMetric(r.PerSecond(name, leg), Unit(name, leg.String(), "objects/s"))
			b.ReportMetric(r.Calls(name, leg), Unit(name, leg.String(), "calls/object"))
		}
	}
	b.ReportMetric(0, "ns/op") // the duration of all contenders and rounds says nothing
}

// Unit returns the unit of a measure of a contender in a leg. Units of benchmarks contain no spaces.
func Unit(contender, leg, measure string) string {
	return strings.ReplaceAll(contender+"/"+leg+"-"+measure, " ", "-")
}

// String returns a table of the results, relative to the first contender. The table is short, because the log of a
// benchmark is truncated.
func (r *Result) String() string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%d items x %d ConfigMaps\t", Items, Objects)
	for leg := range legs {
		fmt.Fprintf(w, "%s: objects/s\tratio\tcalls/object\t", leg)
	}
	for _, name := range r.names {
		fmt.Fprintf(w, "\n%s\t", name)
		for leg := range legs {
			fmt.Fprintf(w, "%.0f\t%.2f\t%.3f\t", r.PerSecond(name, leg), r.Ratio(name, r.names[0], leg), r.Calls(name, leg))
		}
	}
	fmt.Fprintln(w)
	_ = w.Flush() // a strings.Builder never fails
	return text.String()
}
