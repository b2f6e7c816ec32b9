// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/internal/steps"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// timeout is how long an expectation may take. It is long because some of Landscaper's controllers poll every five
// seconds and because the machine may be busy.
const timeout = 90 * time.Second

// Scenario describes something that operators do with Landscaper, and the expected result.
type Scenario struct {
	// Name is a unique sentence that describes the expected result.
	Name string
	// Waits is true if a deploy item has to wait for something in the target. Each time the reason for waiting changes,
	// a deployer may write the item.
	Waits bool
	// Steps run one after the other. The first error ends the scenario.
	Steps []steps.Step
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
	// Steps contains the names and the durations of the steps.
	Steps []string `json:"-"`
}

// Runner runs scenarios on a control plane on which Landscaper and the deployers run.
type Runner struct {
	ControlPlane *controlplane.ControlPlane
	Audit        *Audit
	// Deployer is the name of the user that the deployers have. The writes of this user to deploy items are counted.
	Deployer string
}

// CreateUser creates the user of the deployers and returns a config for it.
func (r *Runner) CreateUser() (*rest.Config, error) {
	return r.Audit.CreateUser(r.ControlPlane, r.Deployer)
}

// Run runs a scenario in a new namespace.
func (r *Runner) Run(ctx context.Context, s Scenario, namespace string) (Result, error) {
	result := Result{Scenario: s.Name}
	e, err := r.newEnv(ctx, namespace)
	if err != nil {
		return result, err
	}
	runner := steps.Runner{Env: e, Timeout: timeout, Finished: func(s steps.Step, duration time.Duration, _ error) {
		result.Steps = append(result.Steps, fmt.Sprintf("%s (%s)", s.Name, duration.Round(time.Millisecond)))
	}}
	if errs := runner.Run(ctx, steps.Expect("Landscaper creates the Context", steps.ContextExists)); len(errs) > 0 {
		return result, errs[0]
	}
	size, err := r.Audit.GetSize()
	if err != nil {
		return result, err
	}
	began := time.Now()
	if err := errors.Join(runner.Run(ctx, s.Steps...)...); err != nil {
		result.Failure = fmt.Sprintf("%v; %s", err, e.DescribeItems(ctx))
	}
	result.Seconds = time.Since(began).Seconds()
	return result, r.setRequests(size, namespace, &result)
}

// newEnv creates the namespace of a scenario and a user for its Targets.
func (r *Runner) newEnv(ctx context.Context, namespace string) (*steps.Env, error) {
	scheme, err := landscapertest.Scheme()
	if err != nil {
		return nil, err
	}
	c, err := client.New(r.ControlPlane.Config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	config, err := r.Audit.CreateUser(r.ControlPlane, userOfTarget(namespace))
	if err != nil {
		return nil, err
	}
	kubeconfig, err := faultnet.EncodeKubeconfig(config)
	if err != nil {
		return nil, err
	}
	if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return nil, fmt.Errorf("create namespace: %w", err)
	}
	return steps.NewEnv(c, namespace, kubeconfig)
}

// userOfTarget returns the name of the user in the Targets of a scenario.
func userOfTarget(namespace string) string { return "target-" + namespace }

// setRequests sets the numbers of requests from the part of the audit log after the given size.
func (r *Runner) setRequests(size int64, namespace string, result *Result) error {
	target := userOfTarget(namespace)
	requests, err := r.Audit.ListRequests(size, func(q Request) bool { return q.User.Username == target || q.User.Username == r.Deployer })
	if err != nil {
		return err
	}
	for _, q := range requests {
		switch ref := q.ObjectRef; {
		case q.User.Username == target && q.Verb != "watch":
			result.TargetCalls++
		case q.User.Username == r.Deployer && q.IsWrite() && ref.Resource == "deployitems" && ref.Namespace == namespace && q.ResponseStatus.Code < 300:
			result.ItemWrites++
		}
	}
	return nil
}
