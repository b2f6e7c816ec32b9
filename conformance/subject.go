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

// Subject is a deployer that is held to the contract: how it is started, and how items of its type are made.
// Name, Type, Valid and one of Start and Command are required; what is left out makes the checks that need it
// "not applicable" in the report.
type Subject struct {
	// Name names the deployer in the report.
	Name string
	// Type is the type of the deploy items that it is responsible for.
	Type lsv1alpha1.DeployItemType

	// Start runs the deployer in this process against the cluster of config until ctx ends. It is called again for
	// every restart; [Library] makes one of the arguments of deployerlib.Add.
	Start func(ctx context.Context, config *rest.Config) error
	// Command makes the command that runs the deployer with a kubeconfig file, not started. It is called again for every
	// restart. Leader election should be off or fast, for a killed process releases nothing.
	Command func(kubeconfig string) *exec.Cmd

	// Target makes the content of the Target that items name; config is an administrator's access to the cluster of the
	// items. nil: items name no Target.
	Target func(config *rest.Config) (lsv1alpha1.TargetSpec, error)
	// TargetLabels are on that Target. A deployer that is started with target selectors has to match them.
	TargetLabels map[string]string
	// OtherTargetLabels are labels of a Target which the deployer, as it is started, must not take. nil: it takes all.
	OtherTargetLabels map[string]string

	// Valid makes the configuration of an item that succeeds soon: JSON as string or []byte, or a value to marshal.
	Valid func(item types.NamespacedName) any
	// Invalid makes a configuration that can never succeed; if the deployer's error quotes something of it, note should
	// stand there: it is long in one check. nil: there is none.
	Invalid func(item types.NamespacedName, note string) any
	// Slow makes the configuration of an item that stays in work until Finish, or long enough to be seen and killed. nil:
	// there is none.
	Slow func(item types.NamespacedName) any
	// Finish lets a slow item succeed. nil: it does so by itself within Bounds.Finish.
	Finish func(ctx context.Context, c client.Client, item types.NamespacedName) error
	// Deployed tells whether what a valid item deploys is there. nil: that cannot be told.
	Deployed func(ctx context.Context, c client.Client, item types.NamespacedName) (bool, error)

	// Only are the names of the checks to make; those about every moment judge what these did. nil: all.
	Only []string
	// Exceptions are checks that the deployer does not pass, with the reason. They are shown in the report.
	Exceptions []Exception

	// Kubeconfig is the file of a cluster with Landscaper's definitions on which to work, in namespaces of our own. Empty:
	// a control plane is started for each revision.
	Kubeconfig string
	// Revisions are the revisions to check. nil: both; on a cluster of the caller the one that its definitions know.
	Revisions []contract.Revision
	// Parallel is how many checks run at the same time, each with items of its own in a namespace of its own; those that
	// restart the deployer run alone. Default 4.
	Parallel int
	// SideBySide checks all revisions at the same time. For deployers that can run twice on a machine: without a fixed port.
	SideBySide bool
	// Bounds say how long things may take.
	Bounds Bounds
	// Observe is told each result when it is known, one at a time, beside what Run and Execute report. nil: nobody.
	Observe func(Result)
	// Logs gets what a command writes and what takes long. nil: nowhere, under [Run] the log of the spec.
	Logs io.Writer
	// Report gets the table at the end of [Run]. nil: standard output.
	Report io.Writer
	// JUnit is the file that [Run] writes the report to, as JUnit. Empty: none.
	JUnit string
}

// Exception is a check that a deployer is known not to pass.
type Exception struct {
	// Check is the name of a check of [Checks].
	Check string
	// Revision limits it to one revision. Empty: both.
	Revision contract.Revision
	// Reason tells why. Required.
	Reason string
}

// Bounds say how long things may take. Nothing waits longer than needed.
type Bounds struct {
	// Start: from starting the deployer until it does something. Default 1 min.
	Start time.Duration
	// Finish: the run of an item, from asking for it to its end. Default 30 s.
	Finish time.Duration
	// Quiet is how long an item is watched that must not be written, after a later item went through. Default 500 ms.
	Quiet time.Duration
	// Timeout is spec.timeout of an item that runs out of time. Default 2 s.
	Timeout time.Duration
	// Stop: the deployer, from being told to end. Default 30 s.
	Stop time.Duration
	// Cleanup: the deletion of what a check left, after which finalizers are removed by force. Default 10 s.
	Cleanup time.Duration
}

// withDefaults fills in what the subject leaves out.
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
		s.Revisions = contract.Revisions()
	}
	s.Observe = oneAtATime(s.Observe)
	return s
}

// oneAtATime lets a function be called by many.
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

// Validate reports every fault of the subject at once.
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
	check((s.Start == nil) != (s.Command == nil), "start, command: want one of them")
	check(s.Parallel >= 0, "parallel: is %d, want at least 1", s.Parallel)
	known := func(name string) bool {
		return slices.ContainsFunc(Checks(), func(c Check) bool { return c.Name == name })
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

// lacks tells why a check is not applicable to the subject; empty when it is.
func (s Subject) lacks(c Check, r contract.Revision) string {
	if c.Revision != "" && c.Revision != r {
		return fmt.Sprintf("only of the %s revision", c.Revision)
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

// need is a part of a subject that a check cannot do without.
type need struct {
	given   func(Subject) bool
	missing string
}

var (
	needsTarget      = need{func(s Subject) bool { return s.Target != nil }, "the subject has no Target"}
	needsOtherTarget = need{func(s Subject) bool { return s.Target != nil && s.OtherTargetLabels != nil }, "the subject takes all Targets"}
	needsInvalid     = need{func(s Subject) bool { return s.Invalid != nil }, "the subject has no invalid configuration"}
	needsSlow        = need{func(s Subject) bool { return s.Slow != nil }, "the subject has no slow configuration"}
	needsDeployed    = need{func(s Subject) bool { return s.Deployed != nil }, "the subject does not tell what is deployed"}
)
