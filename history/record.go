// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/json"
	"time"
)

// Limits of what is recorded.
const (
	// MaxReconciles is the number of reconciles that are kept per item.
	MaxReconciles = 20
	// MaxBytes is the maximum size of one reconcile, in bytes of JSON.
	MaxBytes = 2048
	// DefaultStoreBytes is the default limit for the reconciles of all items together, in bytes of JSON.
	DefaultStoreBytes = 16 << 20

	maxPhases = 16
	maxHooks  = 16
	maxCalls  = 16
	maxCodes  = 5
	maxWord   = 48
)

// What triggers a reconcile.
const (
	TriggerStart = "start" // the first reconcile of the item in this process
	TriggerTimer = "timer" // the requested delay has passed
	TriggerEvent = "event" // the item or one of its dependencies changed, or the deployer requested a reconcile
)

// Reconcile is one reconcile of one item.
type Reconcile struct {
	// Began is when the reconcile began. Micros is its duration in microseconds.
	Began  time.Time `json:"began"`
	Micros int64     `json:"micros"`
	// Trigger is what triggered the reconcile: start, timer or event.
	Trigger string `json:"trigger"`
	// Reason is why a run was due or not. Action is what the run does.
	Reason string `json:"reason,omitempty"`
	Action string `json:"action,omitempty"`
	// Result is done, waiting, failed, error, nothing or abandoned. Codes are those of the error.
	Result string   `json:"result"`
	Codes  []string `json:"codes,omitempty"`
	// Phases are the phases of the pipeline, in the order in which they ended.
	Phases []Phase `json:"phases,omitempty"`
	// Hooks are the hooks that were called, in order.
	Hooks []Hook `json:"hooks,omitempty"`
	// Calls are the requests to API servers.
	Calls []Call `json:"calls,omitempty"`
	// Next is when the next reconcile is due. It is absent if none was requested.
	Next *Next `json:"next,omitempty"`
	// Omitted is the number of phases, hooks and calls that were omitted because of their size.
	Omitted int `json:"omitted,omitempty"`
}

// Phase is one phase of the pipeline.
type Phase struct {
	Name    string `json:"name"`
	Verdict string `json:"verdict"`
	Micros  int64  `json:"micros"`
	Failed  bool   `json:"failed,omitempty"`
}

// Hook is one call of a hook.
type Hook struct {
	Type string `json:"type"`
	Name string `json:"name"`
	// Effect is abort, continue, or empty if the hook returned no result.
	Effect string `json:"effect,omitempty"`
	Micros int64  `json:"micros"`
	Failed bool   `json:"failed,omitempty"`
}

// Call counts requests.
type Call struct {
	// Cluster is landscaper or target.
	Cluster  string `json:"cluster"`
	Verb     string `json:"verb"`
	Resource string `json:"resource"`
	Count    int    `json:"count"`
}

// Next describes when the next reconcile is due.
type Next struct {
	At time.Time `json:"at"`
}

// List is the response of the endpoint for one item.
type List struct {
	Deployer Deployer `json:"deployer"`
	// Reconciles are in the order in which they began.
	Reconciles []Reconcile `json:"reconciles"`
}

// Deployer names the deployer that serves a history.
type Deployer struct {
	Name     string `json:"name"`
	Identity string `json:"identity,omitempty"`
	Version  string `json:"version,omitempty"`
	Type     string `json:"type"`
}

// encode returns the reconcile as at most MaxBytes bytes of JSON. It omits calls, hooks and phases, the last ones
// first, until the rest fits.
func (r *Reconcile) encode() []byte {
	for {
		raw, err := json.Marshal(r)
		if err != nil {
			return nil
		}
		if len(raw) <= MaxBytes {
			return raw
		}
		switch {
		case len(r.Hooks) > len(r.Calls):
			r.Hooks = r.Hooks[:len(r.Hooks)-1]
		case len(r.Calls) > 0:
			r.Calls = r.Calls[:len(r.Calls)-1]
		case len(r.Phases) > 0:
			r.Phases = r.Phases[:len(r.Phases)-1]
		default:
			return nil
		}
		r.Omitted++
	}
}
