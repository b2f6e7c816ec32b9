// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"slices"

	"github.com/deployerkit/deployerkit/deployers/helm/release"
)

// TestConfig determines whether the tests of the chart run. A test is a hook with the event "test".
type TestConfig struct {
	// Enable runs the tests once for each new revision, after its objects are ready and its hooks have ended. If a test
	// fails, the operation fails.
	Enable bool `json:"enable,omitempty"`
	// Include and Exclude select tests by the names of their objects. If Include is empty, it selects all tests.
	Include []string `json:"include,omitempty"`
	Exclude []string `json:"exclude,omitempty"`
}

// check validates the settings.
func (c TestConfig) check(helmDeployment bool) error {
	const path = "deployerkit.test"
	switch {
	case c.Enable && !helmDeployment:
		return newConfigError(path+".enable", "is supported only if helmDeployment is true")
	case !c.Enable && len(c.Include)+len(c.Exclude) > 0:
		return newConfigError(path, "has include or exclude, but enable is false")
	}
	return nil
}

// selects reports whether a test runs.
func (c TestConfig) selects(name string) bool {
	return (len(c.Include) == 0 || slices.Contains(c.Include, name)) && !slices.Contains(c.Exclude, name)
}

// TestResult is the result of a test of the chart.
type TestResult struct {
	Name string `json:"name"`
	// Phase is Succeeded or Failed.
	Phase string `json:"phase"`
}

// maxTestResults limits the number of results in the provider status.
const maxTestResults = 50

// runTests runs the tests of the chart, if the configuration enables them.
func runTests(ctx context.Context, r *run, op *operation) error {
	if !r.config.Extension.Test.Enable {
		return nil
	}
	return r.newHookRunner(op).runHooks(ctx, release.Test)
}

// testResults returns the results of the tests that have run in an operation.
func (r *run) testResults(op *operation) []TestResult {
	if op.record == nil || r.config == nil || !r.config.Extension.Test.Enable {
		return nil
	}
	hooks, err := r.newHookRunner(op).selectHooks(release.Test)
	if err != nil {
		return nil
	}
	var out []TestResult
	for _, hook := range hooks {
		if phase := hook.Phase(); phase != "" && len(out) < maxTestResults {
			out = append(out, TestResult{Name: hook.Object.GetName(), Phase: phase})
		}
	}
	return out
}
