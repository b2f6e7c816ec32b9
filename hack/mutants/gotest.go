// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"

	"github.com/deployerkit/deployerkit/hack/internal/testjson"
)

// timeLimit limits the tests of a package, because a mutant may contain an endless loop.
const timeLimit = "5m"

// goTest runs go test. It builds the control plane once, when a suite needs it.
type goTest struct {
	dir string // the directory in which go test runs
}

func (g goTest) run(ctx context.Context, args ...string) (testResult, error) {
	flags := []string{"test", "-json", "-vet=off", "-failfast", "-timeout=" + timeLimit}
	cmd := exec.CommandContext(ctx, "go", append(flags, args...)...)
	cmd.Dir = g.dir
	if isSuite := func(arg string) bool { return strings.HasPrefix(arg, "./test/envtest/") }; slices.ContainsFunc(args, isSuite) {
		assets, err := controlPlane()
		if err != nil {
			return testResult{}, err
		}
		cmd.Env = append(os.Environ(), "KUBEBUILDER_ASSETS="+assets)
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return testResult{}, fmt.Errorf("run go test: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return testResult{}, fmt.Errorf("run go test: %w", err)
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

// controlPlane returns the directory that contains the binaries of the control plane.
var controlPlane = sync.OnceValues(func() (string, error) {
	make := exec.Command("go", "run", "./assets")
	make.Stderr = os.Stderr
	out, err := make.Output()
	if err != nil {
		return "", fmt.Errorf("make the control plane: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
})

// testResult is the result of a run of go test.
type testResult struct {
	passed  int      // number of tests and specs
	tests   []string // failed tests, in order
	specs   []string // failed Ginkgo specs
	dead    string   // a package that failed without a failed test because of a panic or the time limit
	unbuilt string   // the first line of a build error
}

// failure describes the first failure, or returns "" if there is none.
func (v testResult) failure() string {
	switch {
	case len(v.specs) > 0:
		return v.specs[0]
	case len(v.tests) > 0:
		return v.firstLeaf()
	}
	return v.dead
}

// firstLeaf returns the first failed test. If this test has failed subtests, firstLeaf returns the first failed
// subtest.
func (v testResult) firstLeaf() string {
	first := v.tests[0]
	for _, test := range v.tests[1:] {
		if strings.HasPrefix(test, first+"/") {
			first = test
		}
	}
	return first
}

// read processes all events.
func read(r io.Reader) (testResult, error) {
	var v testResult
	err := testjson.Read(r, v.addEvent, func(string) {})
	return v, err
}

func (v *testResult) addEvent(e testjson.Event) {
	switch e.Action {
	case "build-output":
		if v.unbuilt == "" && !strings.HasPrefix(e.Output, "#") {
			v.unbuilt = strings.TrimSpace(e.Output)
		}
	case "output":
		v.parseOutput(e)
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

// parseOutput reads the lines that Ginkgo prints at the end of a suite.
func (v *testResult) parseOutput(e testjson.Event) {
	if spec := e.FailedSpec(); spec != "" {
		v.specs = append(v.specs, spec)
	}
	if specs, ok := e.ParseSummary(); ok {
		v.passed += specs.Passed - 1 // the test function that runs the specs is not counted
	}
}
