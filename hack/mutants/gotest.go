// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// timeLimit of one package: a mutant may turn round for ever.
const timeLimit = "5m"

// goTest is the real runner. It makes the control plane once, when a suite needs it.
type goTest struct{}

func (goTest) run(ctx context.Context, args ...string) (verdict, error) {
	flags := []string{"test", "-json", "-vet=off", "-failfast", "-timeout=" + timeLimit}
	cmd := exec.CommandContext(ctx, "go", append(flags, args...)...)
	if isSuite := func(arg string) bool { return strings.HasPrefix(arg, "./test/envtest/") }; slices.ContainsFunc(args, isSuite) {
		assets, err := controlPlane()
		if err != nil {
			return verdict{}, err
		}
		cmd.Env = append(os.Environ(), "KUBEBUILDER_ASSETS="+assets)
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return verdict{}, fmt.Errorf("run go test: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return verdict{}, fmt.Errorf("run go test: %w", err)
	}
	v, err := read(out)
	if err != nil {
		return v, err
	}
	failed := cmd.Wait() != nil
	if failed && v.failure() == "" && v.unbuilt == "" {
		return v, fmt.Errorf("go test %s failed without a failed test", strings.Join(args, " "))
	}
	return v, nil
}

// controlPlane is the directory of its binaries.
var controlPlane = sync.OnceValues(func() (string, error) {
	make := exec.Command("go", "run", "./hack/assets")
	make.Stderr = os.Stderr
	out, err := make.Output()
	if err != nil {
		return "", fmt.Errorf("make the control plane: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
})

// event is one line of `go test -json` (see `go doc test2json`).
type event struct {
	Action      string
	Package     string
	ImportPath  string // instead of Package in build output
	Test        string
	Output      string
	FailedBuild string
}

// verdict is what a run of go test came to.
type verdict struct {
	passed  int      // tests and specs
	tests   []string // that failed, in their order
	specs   []string // Ginkgo's, too
	dead    string   // a package that failed without a failed test: a panic, the time limit
	unbuilt string   // the first line about what does not build
}

// failure names what failed; empty: nothing.
func (v verdict) failure() string {
	switch {
	case len(v.specs) > 0:
		return v.specs[0]
	case len(v.tests) > 0:
		return v.leaf()
	}
	return v.dead
}

// leaf is the first failed test, or the first of its subtests that failed.
func (v verdict) leaf() string {
	first := v.tests[0]
	for _, test := range v.tests[1:] {
		if strings.HasPrefix(test, first+"/") {
			first = test
		}
	}
	return first
}

// read takes all events; lines that are none say nothing.
func read(r io.Reader) (verdict, error) {
	var v verdict
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if json.Unmarshal(line, &e) == nil {
			v.take(e)
		}
		switch err {
		case nil:
		case io.EOF:
			return v, nil
		default:
			return v, fmt.Errorf("read go test's output: %w", err)
		}
	}
}

func (v *verdict) take(e event) {
	switch e.Action {
	case "build-output":
		if v.unbuilt == "" && !strings.HasPrefix(e.Output, "#") {
			v.unbuilt = strings.TrimSpace(e.Output)
		}
	case "output":
		v.output(strings.TrimSpace(ansi.ReplaceAllString(e.Output, "")))
	case "pass":
		if e.Test != "" {
			v.passed++
		}
	case "fail":
		switch {
		case e.Test != "":
			v.tests = append(v.tests, e.Test)
		case e.FailedBuild == "" && len(v.tests) == 0 && v.dead == "":
			v.dead = "a panic or the time limit of " + e.Package
		}
	}
}

var (
	ansi          = regexp.MustCompile(`\x1b\[[0-9;]*m`)
	ginkgoFailure = regexp.MustCompile(`^\[(?:FAIL|PANICKED!|TIMEDOUT|INTERRUPTED)\] (.*)$`)
	ginkgoSummary = regexp.MustCompile(`-- (\d+) Passed \|`)
)

// output reads what Ginkgo prints at the end of a suite.
func (v *verdict) output(line string) {
	if found := ginkgoFailure.FindStringSubmatch(line); found != nil {
		v.specs = append(v.specs, found[1])
	}
	if found := ginkgoSummary.FindStringSubmatch(line); found != nil {
		specs, _ := strconv.Atoi(found[1]) // the pattern lets digits through only
		v.passed += specs - 1              // for the test function that runs them
	}
}
