// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const docs = "../../docs"

func TestImagesShowTheRecordedOutput(t *testing.T) {
	t.Run("the images of the benchmarks show their recorded output [W3]", func(t *testing.T) {
		guide, err := os.ReadFile(filepath.Join(docs, "benchmarks.md"))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range charts {
			want, err := draw(docs, c)
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(filepath.Join(docs, "images", c.image))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("run go -C hack run ./charts, because %s is out of date: -want, +got:\n%s", c.image, diff)
			}
			for _, name := range []string{"(images/" + c.image + ")", "(benchmarks/" + c.output + ")"} {
				if !strings.Contains(string(guide), name) {
					t.Errorf("benchmarks.md does not contain %s", name)
				}
			}
		}
	})
}

var example = chart{
	image: "x.svg", output: "x.txt", benchmark: "X", title: "Speed <fast>", measure: "objects/s",
	legs: []word{{"new", "New"}, {"old", "Old"}}, contenders: []word{{"a", "A & B"}, {"b", "C"}},
}

const line = "BenchmarkX-2 1 0 ns/op 1 a/new-calls/object 1250 a/new-objects/s 0.5 a/old-objects/s 625 b/new-objects/s 0 b/old-objects/s\n"

func TestReadFigures(t *testing.T) {
	t.Run("values are read from the output of a benchmark", func(t *testing.T) {
		got, err := readFigures(strings.NewReader("goos: linux\nBenchmarkOther 1 3 a/new-objects/s\n"+line+"    x_test.go:1: log\nPASS\n"), example)
		want := map[string]float64{"a/new-objects/s": 1250, "a/old-objects/s": 0.5, "b/new-objects/s": 625, "b/old-objects/s": 0}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("error %v, -want, +got:\n%s", err, diff)
		}
	})
	for name, test := range map[string]struct{ output, want string }{
		"no output":         {"PASS\n", "found 0 results of BenchmarkX, want 1"},
		"two results":       {line + line, "found 2 results of BenchmarkX, want 1"},
		"missing value":     {"BenchmarkX 1 5 a/new-objects/s\n", "no value of BenchmarkX for b/new-objects/s"},
		"unknown contender": {strings.TrimSuffix(line, "\n") + " 3 c/new-objects/s\n", "the chart x.svg does not show c/new-objects/s"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := readFigures(strings.NewReader(test.output), example); err == nil || err.Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

func TestRender(t *testing.T) {
	figures := map[string]float64{"a/new-objects/s": 1250, "a/old-objects/s": 0, "b/new-objects/s": 625, "b/old-objects/s": 0}
	out, err := render(example, figures)
	if err != nil {
		t.Fatal(err)
	}
	decoder := xml.NewDecoder(strings.NewReader(string(out)))
	var widths, texts []string
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			for _, attribute := range token.Attr {
				if token.Name.Local == "rect" && attribute.Name.Local == "width" {
					widths = append(widths, attribute.Value)
				}
			}
		case xml.CharData:
			if text := strings.TrimSpace(string(token)); text != "" && !strings.Contains(text, "{") {
				texts = append(texts, text)
			}
		}
	}
	if diff := cmp.Diff([]string{"432.0", "216.0", "0.0", "0.0"}, widths); diff != "" {
		t.Errorf("widths of the bars: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Speed <fast>", "New", "A & B", "1,250", "C", "625", "Old", "A & B", "0", "C", "0"}, texts); diff != "" {
		t.Errorf("texts: -want, +got:\n%s", diff)
	}
}

func TestFormat(t *testing.T) {
	for value, want := range map[float64]string{0: "0", 0.02: "0.02", 1: "1", 2.0249: "2.02", 99.96: "100", 379.4: "379", 53693.2: "53,693", 1234567: "1,234,567"} {
		if got := format(value); got != want {
			t.Errorf("format(%v) = %s, want %s", value, got, want)
		}
	}
}
