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

// Subject describes a deployer to check: how to start it, and how to create deploy items of its type. Name, Type, Valid
// and either Start or Command are required. If an optional field is missing, the report shows the checks that need it
// as not applicable.
type Subject struct {
	// Name is the name of the deployer in the report.
	Name string
	// Type is the type of the deploy items that the deployer is responsible for.
	Type lsv1alpha1.DeployItemType

	// Start runs the deployer in this process against the cluster of config until ctx is done. It is called again for
	// every restart. [Library] returns such a function for deployers made with deployerlib.
	Start func(ctx context.Context, config *rest.Config) error
	// Command returns a command, not started, that runs the deployer with a kubeconfig file. It is called again for
	// every restart. Leader election should be disabled or fast, because a killed process does not release its lease.
	Command func(kubeconfig string) *exec.Cmd

	// Target returns the content of the Target that items name. The config has administrator access to the cluster of the
	// items. If Target is nil, items name no Target.
	Target func(config *rest.Config) (lsv1alpha1.TargetSpec, error)
	// TargetLabels are the labels of that Target. If the deployer has target selectors, they must match.
	TargetLabels map[string]string
	// OtherTargetLabels are labels of a Target that the selectors of the deployer do not match. Leave it nil if the deployer
	// accepts every Target.
	OtherTargetLabels map[string]string

	// Valid returns the configuration of an item that succeeds quickly: JSON as string or []byte, or a value to
	// marshal.
	Valid func(item types.NamespacedName) any
	// Invalid returns a configuration that can never succeed. If the deployer's error message quotes a part of the
	// configuration, that part should be note; one check passes a long note. Optional.
	Invalid func(item types.NamespacedName, note string) any
	// Slow returns the configuration of an item whose run lasts until Finish is called, or long enough to kill the
	// deployer meanwhile. Optional.
	Slow func(item types.NamespacedName) any
	// Finish lets a slow item succeed. If Finish is nil, a slow item must succeed by itself within Bounds.Finish.
	Finish func(ctx context.Context, c client.Client, item types.NamespacedName) error
	// Deployed reports whether the objects that a valid item deploys exist. Optional.
	Deployed func(ctx context.Context, c client.Client, item types.NamespacedName) (bool, error)

	// Exceptions lists checks that the deployer is known to fail, with the reason. The report shows them as not
	// applicable.
	Exceptions []Exception
	// Bounds are the time limits.
	Bounds Bounds

	Options
}

// Options configures how a subject is checked. The zero value runs all checks for both revisions on control planes that
// are started for them.
type Options struct {
	// Only lists the names of the checks to run. The rules ("at every moment") judge what these checks did. By default
	// all checks run.
	Only []string
	// Kubeconfig is the kubeconfig file of a cluster with Landscaper's definitions. The checks create namespaces in it. By
	// default, a control plane is started for each revision.
	Kubeconfig string
	// Revisions are the revisions to check. The default is both, or with Kubeconfig the one that the definitions of the
	// cluster belong to.
	Revisions []contract.Revision
	// Parallel is the number of checks that run at the same time, each in a namespace of its own. Checks that restart
	// the deployer run alone. The default is 4.
	Parallel int
	// SideBySide checks all revisions at the same time. Two instances of the deployer must be able to run on one
	// machine, so it must not use a fixed port.
	SideBySide bool
	// Observe is called with each result as soon as it is known. Calls do not overlap. Optional.
	Observe func(Result)
	// Logs receives the output of a command and the progress of long steps. The default is the log of the spec under
	// [Run], and io.Discard otherwise.
	Logs io.Writer
	// Report receives the table at the end of [Run]. The default is standard output.
	Report io.Writer
	// JUnit is the name of the file to which [Run] writes the report as JUnit. Optional.
	JUnit string
}

// Exception is a check that a deployer is known to fail.
type Exception struct {
	// Check is the name of one of [Checks].
	Check string
	// Revision limits the exception to one revision. By default it holds for both.
	Revision contract.Revision
	// Reason explains the exception. It is required.
	Reason string
}

// Bounds holds time limits. Nothing waits longer than needed.
type Bounds struct {
	// Start limits the time from the start of the deployer until it writes an item. The default is 1 min.
	Start time.Duration
	// Finish limits the run of an item, from the request to the end. The default is 30 s.
	Finish time.Duration
	// Quiet is how long an item that must not be written is watched after a later item has finished. The default is 500
	// ms.
	Quiet time.Duration
	// Timeout is spec.timeout of an item that must time out. The default is 2 s.
	Timeout time.Duration
	// Stop limits the time that the deployer takes to stop. The default is 30 s.
	Stop time.Duration
	// Cleanup limits the deletion of what a check leaves behind. After that, finalizers are removed by force. The
	// default is 10 s.
	Cleanup time.Duration
}

// withDefaults sets the defaults of the subject.
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

// oneAtATime serializes the calls of f.
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

// Validate returns an error that lists every fault of the subject.
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

// skipReason returns why a check is not applicable to the subject, or "" if it is.
func (s Subject) skipReason(c Check, r contract.Revision) string {
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

// need is a part of a subject that a check requires.
type need struct {
	given   func(Subject) bool
	missing string
}

var (
	needsTarget      = need{func(s Subject) bool { return s.Target != nil }, "the subject has no Target"}
	needsOtherTarget = need{func(s Subject) bool { return s.Target != nil && s.OtherTargetLabels != nil }, "the subject accepts all Targets"}
	needsInvalid     = need{func(s Subject) bool { return s.Invalid != nil }, "the subject has no invalid configuration"}
	needsSlow        = need{func(s Subject) bool { return s.Slow != nil }, "the subject has no slow configuration"}
	needsDeployed    = need{func(s Subject) bool { return s.Deployed != nil }, "the subject does not report what is deployed"}
)
