// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	"github.com/deployerkit/deployerkit/controlplane"
)

// Scenario is something that operators do with Landscaper, and its expected result.
type Scenario struct {
	// Name is a short, unique text.
	Name string
	// Waits reports that a deploy item waits for something in the target. A deployer may then write the
	// reason to the item, once per reason.
	Waits bool
	// Steps run one after the other. The first error ends the scenario.
	Steps []Step
}

// Result is the result of one run of a scenario.
type Result struct {
	// Scenario is the name of the scenario.
	Scenario string `json:"scenario"`
	// Failure is empty if all steps succeeded.
	Failure string `json:"failure,omitempty"`
	// Seconds is the duration.
	Seconds float64 `json:"seconds"`
	// ItemWrites is the number of successful writes of deploy items by the deployer.
	ItemWrites int `json:"itemWrites"`
	// TargetCalls is the number of requests that the deployer sent to the target.
	TargetCalls int `json:"targetCalls"`
}

// Runner runs scenarios on a control plane with Landscaper and deployers.
type Runner struct {
	ControlPlane *controlplane.ControlPlane
	Audit        *Audit
	// Deployer is the user of the deployers, whose writes of deploy items are counted.
	Deployer string
}

// Access adds the deployers' user and returns its access.
func (r *Runner) Access() (*rest.Config, error) { return r.Audit.User(r.ControlPlane, r.Deployer) }

// Run runs a scenario in a new namespace.
func (r *Runner) Run(ctx context.Context, s Scenario, namespace string) (Result, error) {
	result := Result{Scenario: s.Name}
	e, err := NewEnv(ctx, r.ControlPlane, r.Audit, namespace)
	if err != nil {
		return result, err
	}
	mark, err := r.Audit.Mark()
	if err != nil {
		return result, err
	}
	began := time.Now()
	for i, step := range s.Steps {
		if err := step(ctx, e); err != nil {
			result.Failure = fmt.Sprintf("step %d: %v", i+1, err)
			break
		}
	}
	result.Seconds = time.Since(began).Seconds()
	return result, r.count(mark, e, &result)
}

// count reads the audit log.
func (r *Runner) count(mark int64, e *Env, result *Result) error {
	requests, err := r.Audit.Since(mark, func(q Request) bool { return q.User.Username == e.user || q.User.Username == r.Deployer })
	if err != nil {
		return err
	}
	for _, q := range requests {
		switch {
		case q.User.Username == e.user && q.Verb != "watch":
			result.TargetCalls++
		case q.User.Username == r.Deployer && q.IsWrite() && q.ObjectRef.Resource == "deployitems" && q.ObjectRef.Namespace == e.Namespace && q.ResponseStatus.Code < 300:
			result.ItemWrites++
		}
	}
	return nil
}
