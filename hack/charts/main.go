// SPDX-License-Identifier: Apache-2.0

// Command charts draws the recorded output of the benchmarks as SVG images for docs/benchmarks.md:
//
//	go -C hack run ./charts
//
// It reads docs/benchmarks/*.txt, which is what `make bench` printed, and writes docs/images/benchmark-*.svg. The list
// charts in this package says what each image shows.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run("../docs"); err != nil {
		fmt.Fprintln(os.Stderr, "charts:", err)
		os.Exit(1)
	}
}

// run draws all charts. docs is the directory of the guides.
func run(docs string) error {
	for _, c := range charts {
		image, err := draw(docs, c)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(docs, "images", c.image), image, 0o644); err != nil { //nolint:gosec // an image for everyone
			return err
		}
	}
	return nil
}

// draw returns the image of a chart.
func draw(docs string, c chart) ([]byte, error) {
	path := filepath.Join(docs, "benchmarks", c.output)
	file, err := os.Open(path) //nolint:gosec // a path of the list of charts
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // only read
	figures, err := readFigures(file, c)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return render(c, figures)
}
