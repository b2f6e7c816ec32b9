// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
)

// Subject describes the deployer to check: how to start it, and how to create deploy items of its type. Name, Type,
// Valid and either Start or Command are required. The report shows checks that need a missing optional field as not
// applicable.
type Subject struct {
	// Name is the name of the deployer in the report.
	Name string
	// Type is the type of deploy items for which the deployer is responsible.
	Type lsv1alpha1.DeployItemType

	// Start runs the deployer in this process until ctx is done. It connects to the cluster with the deploy items
	// through config. After the first start, Start is called again for each restart. For a deployer made with
	// deployerlib, use [NewStartFunc].
	Start func(ctx context.Context, config *rest.Config) error
	// Command returns a command that runs the deployer with a kubeconfig file. Command must not start the command.
	// After the first start, Command is called again for each restart. Leader election should be disabled or fast,
	// because a killed process does not release its lease.
	Command func(kubeconfig string) *exec.Cmd

	// Target returns the spec of the Target to which the items refer. Through config, it has administrator access to
	// the cluster with the deploy items. If Target is nil, the items have no Target.
	Target func(config *rest.Config) (lsv1alpha1.TargetSpec, error)
	// TargetLabels are the labels of the Target to which the items refer. If the deployer has target selectors, they
	// must match these labels.
	TargetLabels map[string]string
	// OtherTargetLabels are the labels of a Target that the deployer's target selectors do not match. Leave the field
	// nil if the deployer accepts every Target.
	OtherTargetLabels map[string]string

	// Valid returns a configuration with which an item succeeds quickly. A string or []byte must contain JSON. Any
	// other value is marshaled.
	Valid func(item types.NamespacedName) any
	// Invalid returns a configuration with which an item can never succeed. If the deployer's error message quotes a
	// part of the configuration, that part should contain note, which may be long. This field is optional.
	Invalid func(item types.NamespacedName, note string) any
	// Slow returns a configuration with which a run lasts until Finish is called. If Finish is nil, the run must last
	// long enough for a check to kill the deployer during the run. This field is optional.
	Slow func(item types.NamespacedName) any
	// Finish lets the run of a slow item succeed. If Finish is nil, the run must succeed by itself within
	// Bounds.Finish.
	Finish func(ctx context.Context, c client.Client, item types.NamespacedName) error
	// Deployed reports whether the objects that a valid item deploys exist. This field is optional.
	Deployed func(ctx context.Context, c client.Client, item types.NamespacedName) (bool, error)

	// Exceptions lists the checks that the deployer is known to fail, each with a reason. The report shows these checks
	// as not applicable.
	Exceptions []Exception
	// Bounds contains the time limits.
	Bounds Bounds

	Options
}

// Options configures how a subject is checked. With the zero value, all checks run in both revisions. Each revision has
// its own control plane.
type Options struct {
	// Only lists the names of the checks to run. The rules, whose promise begins with "at every moment", are then
	// applied only to the histories of these checks. By default, all checks run.
	Only []string
	// Kubeconfig is the path of a kubeconfig file for a cluster that has Landscaper's CustomResourceDefinitions. The
	// checks create namespaces in this cluster. By default, each revision gets its own control plane.
	Kubeconfig string
	// Revisions lists the revisions to check. By default, both revisions are checked. If Kubeconfig is set, only the
	// revision of the CustomResourceDefinitions in that cluster can be checked. The report shows the checks of the
	// other revision as not applicable.
	Revisions []contract.Revision
	// Parallel is the number of checks that run at the same time, each in its own namespace. Checks that restart the
	// deployer run alone. The default is 4.
	Parallel int
	// SideBySide checks all revisions at the same time. Then two instances of the deployer run on one machine, so the
	// deployer must not use fixed ports.
	SideBySide bool
	// Observe is called with each result as soon as it is known. Calls do not overlap. This field is optional.
	Observe func(Result)
	// Logs receives the output of a command and progress messages. By default, [Run] uses the log of the spec, and
	// [Execute] uses io.Discard.
	Logs io.Writer
	// Report is the writer to which [Run] writes the table at the end. The default is standard output.
	Report io.Writer
	// JUnit is the name of the file to which [Run] writes the report in JUnit format. This field is optional.
	JUnit string
}

// Exception names a check that a deployer is known to fail.
type Exception struct {
	// Check is the name of one of [AllChecks].
	Check string
	// Revision limits the exception to one revision. By default, the exception applies to both revisions.
	Revision contract.Revision
	// Reason explains the exception. It is required.
	Reason string
}

// Bounds contains time limits. A check that waits for a condition continues as soon as the condition is met.
type Bounds struct {
	// Start limits the time from the start of the deployer until it first writes to an item. The default is 1 min.
	Start time.Duration
	// Finish limits the time from the request of a run to the end of the run. The default is 30 s.
	Finish time.Duration
	// Quiet is how long a check watches an item that the deployer must not change. Most checks first wait for the end
	// of the run of another item, and then watch the item for this time. The default is 500 ms.
	Quiet time.Duration
	// Timeout is the value of spec.timeout for an item whose run must time out. The default is 2 s.
	Timeout time.Duration
	// Stop limits the time that the deployer may take to stop. The default is 30 s.
	Stop time.Duration
	// Cleanup limits the time that the deployer may take to delete the items of a check. After that time, the check
	// removes the finalizers of the items itself. The default is 10 s.
	Cleanup time.Duration
}

// withDefaults returns the subject with its defaults.
func (s Subject) withDefaults() Subject {
	for d, fallback := range map[*time.Duration]time.Duration{
		&s.Bounds.Start: time.Minute, &s.Bounds.Finish: 30 * time.Second, &s.Bounds.Quiet: 500 * time.Millisecond,
		&s.Bounds.Timeout: 2 * time.Second, &s.Bounds.Stop: 30 * time.Second, &s.Bounds.Cleanup: 10 * time.Second,
	} {
		if *d == 0 {
			*d = fallback
		}
	}
	if s.Logs == nil {
		s.Logs = io.Discard
	}
	if s.Parallel == 0 {
		s.Parallel = 4
	}
	if len(s.Revisions) == 0 {
		s.Revisions = contract.AllRevisions()
	}
	s.Observe = oneAtATime(s.Observe)
	return s
}

// oneAtATime returns a function that calls f, but never calls it concurrently.
func oneAtATime(f func(Result)) func(Result) {
	var mu sync.Mutex
	return func(r Result) {
		mu.Lock()
		defer mu.Unlock()
		if f != nil {
			f(r)
		}
	}
}

// Validate returns an error that lists every invalid field of the subject.
func (s Subject) Validate() error {
	var faults []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	check(s.Name != "", "name: required")
	check(s.Type != "", "type: required")
	check(s.Valid != nil, "valid: required")
	check((s.Start == nil) != (s.Command == nil), "start, command: set exactly one of them")
	check(s.Parallel >= 0, "parallel: is %d, want at least 1", s.Parallel)
	known := func(name string) bool {
		return slices.ContainsFunc(AllChecks(), func(c Check) bool { return c.Name == name })
	}
	for i, name := range s.Only {
		check(known(name), "only[%d]: there is no check %q", i, name)
	}
	for i, e := range s.Exceptions {
		check(known(e.Check), "exceptions[%d]: there is no check %q", i, e.Check)
		check(e.Reason != "", "exceptions[%d]: reason: required", i)
	}
	for _, r := range s.Revisions {
		_, known := features[r]
		check(known, "revisions: there is no revision %q", r)
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("subject %q: %w", s.Name, err)
	}
	return nil
}

// skipReason returns the reason why a check does not apply to the subject, or "" if it applies.
func (s Subject) skipReason(c Check, r contract.Revision) string {
	if c.Revision != "" && c.Revision != r {
		return fmt.Sprintf("applies only to the %s revision", c.Revision)
	}
	for _, e := range s.Exceptions {
		if e.Check == c.Name && (e.Revision == "" || e.Revision == r) {
			return "exception: " + e.Reason
		}
	}
	for _, n := range c.needs {
		if !n.given(s) {
			return n.missing
		}
	}
	return ""
}

// need is an optional field of a subject that some checks require. The function `given` reports whether the subject
// sets the field.
type need struct {
	given   func(Subject) bool
	missing string
}

var (
	needsTarget      = need{func(s Subject) bool { return s.Target != nil }, "the subject has no Target"}
	needsOtherTarget = need{func(s Subject) bool { return s.Target != nil && s.OtherTargetLabels != nil }, "the subject accepts all Targets"}
	needsInvalid     = need{func(s Subject) bool { return s.Invalid != nil }, "the subject has no invalid configuration"}
	needsSlow        = need{func(s Subject) bool { return s.Slow != nil }, "the subject has no slow configuration"}
	needsDeployed    = need{func(s Subject) bool { return s.Deployed != nil }, "the subject cannot report whether objects are deployed"}
)
