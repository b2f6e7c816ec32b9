// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// readFigures reads the values of a chart from the output of `go test -bench`. The keys are the units, such as
// Flux/install-objects/s. It returns an error if the output lacks a value, contains the benchmark more than once, or
// contains a contender or a leg that the chart does not show.
func readFigures(output io.Reader, c chart) (map[string]float64, error) {
	figures := map[string]float64{}
	found := 0
	reader := benchfmt.NewReader(output, c.output)
	for reader.Scan() {
		result, isResult := reader.Result().(*benchfmt.Result)
		if !isResult || string(result.Name.Base()) != c.benchmark {
			continue // other lines of the output, or another benchmark
		}
		found++
		for _, value := range result.Values {
			unit, number := value.Unit, value.Value
			if value.OrigUnit != "" {
				unit, number = value.OrigUnit, value.OrigValue
			}
			if strings.HasSuffix(unit, "-"+c.measure) {
				figures[unit] = number
			}
		}
	}
	if err := reader.Err(); err != nil {
		return nil, err
	}
	if found != 1 {
		return nil, fmt.Errorf("found %d results of Benchmark%s, want 1", found, c.benchmark)
	}
	return figures, check(figures, c)
}

// check returns an error if the figures are not exactly those of the chart.
func check(figures map[string]float64, c chart) error {
	known := map[string]bool{}
	for _, leg := range c.legs {
		for _, contender := range c.contenders {
			unit := c.unit(contender, leg)
			known[unit] = true
			if _, found := figures[unit]; !found {
				return fmt.Errorf("no value of Benchmark%s for %s", c.benchmark, unit)
			}
		}
	}
	for unit := range figures {
		if !known[unit] {
			return fmt.Errorf("the chart %s does not show %s", c.image, unit)
		}
	}
	return nil
}

// unit returns the unit of a bar, as package race of the benchmarks writes it.
func (c chart) unit(contender, leg word) string {
	return contender.unit + "/" + leg.unit + "-" + c.measure
}
