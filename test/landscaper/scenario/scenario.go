// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	"github.com/deployerkit/deployerkit/controlplane"
)

// Scenario describes something that operators do with Landscaper, and the expected result.
type Scenario struct {
	// Name is a short unique description.
	Name string
	// Waits is true if a deploy item has to wait for something in the target. Each time the reason for waiting changes,
	// a deployer may write the item.
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
	// Seconds is the duration of the run.
	Seconds float64 `json:"seconds"`
	// ItemWrites is the number of successful writes of deploy items that the deployer made.
	ItemWrites int `json:"itemWrites"`
	// TargetCalls is the number of requests that the deployer sent to the target.
	TargetCalls int `json:"targetCalls"`
}

// Runner runs scenarios on a control plane on which Landscaper and the deployers run.
type Runner struct {
	ControlPlane *controlplane.ControlPlane
	Audit        *Audit
	// Deployer is the name of the user that the deployers have. The writes of this user to deploy items are counted.
	Deployer string
}

// Access creates this user and returns a config for it.
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

// count sets the numbers of requests from the audit log.
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
