// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/json"
	"time"
)

// These constants limit the size of the recorded histories.
const (
	// maxReconciles is the number of reconciles that are kept per item.
	maxReconciles = 20
	// maxReconcileBytes is the maximum size of one reconcile, in bytes of JSON.
	maxReconcileBytes = 2048
	// DefaultStoreBytes is the default limit for the reconciles of all items together, in bytes of JSON.
	DefaultStoreBytes = 16 << 20

	maxPhases = 16
	maxHooks  = 16
	maxCalls  = 16
	maxCodes  = 5
	maxWord   = 48
)

// These constants are the triggers of a reconcile.
const (
	TriggerStart = "start" // the first reconcile of the item in this process
	TriggerTimer = "timer" // the requested delay has passed
	TriggerEvent = "event" // the item or one of its dependencies changed, or the deployer requested a reconcile
)

// Reconcile describes one reconcile of one item.
type Reconcile struct {
	// Began is the time when the reconcile began. Micros is the duration of the reconcile in microseconds.
	Began  time.Time `json:"began"`
	Micros int64     `json:"micros"`
	// Trigger is what triggered the reconcile: "start", "timer" or "event".
	Trigger string `json:"trigger"`
	// Reason explains why a run was due or not due. Action is what the run does, such as reconcile or delete.
	Reason string `json:"reason,omitempty"`
	Action string `json:"action,omitempty"`
	// Result is "done", "waiting", "failed", "error", "nothing" or "abandoned". Codes contains the error codes of a
	// failed run.
	Result string   `json:"result"`
	Codes  []string `json:"codes,omitempty"`
	// Phases contains the phases of the reconcile, in the order in which they ended.
	Phases []Phase `json:"phases,omitempty"`
	// Hooks contains the hooks, in the order in which they were called.
	Hooks []Hook `json:"hooks,omitempty"`
	// Calls contains the requests to API servers.
	Calls []Call `json:"calls,omitempty"`
	// Next is the time of the next reconcile. It is nil if none was requested.
	Next *NextReconcile `json:"next,omitempty"`
	// Omitted is the number of phases, hooks and calls that are missing because of the size limits.
	Omitted int `json:"omitted,omitempty"`
}

// Phase describes one phase of a reconcile, for example the phase "start".
type Phase struct {
	Name    string `json:"name"`
	Verdict string `json:"verdict"`
	// Start is the time from the beginning of the reconcile to the beginning of the phase, in microseconds. Micros is
	// the duration of the phase.
	Start  int64 `json:"start,omitempty"`
	Micros int64 `json:"micros"`
	Failed bool  `json:"failed,omitempty"`
}

// Hook describes one call of a hook.
type Hook struct {
	Type string `json:"type"`
	Name string `json:"name"`
	// Effect is "abort", "continue" or "wait". It is empty if the hook returned no result.
	Effect string `json:"effect,omitempty"`
	// Start and Micros have the same meaning as in [Phase].
	Start  int64 `json:"start,omitempty"`
	Micros int64 `json:"micros"`
	Failed bool  `json:"failed,omitempty"`
}

// Call contains the number of requests with the given cluster, verb and resource.
type Call struct {
	// Cluster is "landscaper" or "target".
	Cluster  string `json:"cluster"`
	Verb     string `json:"verb"`
	Resource string `json:"resource"`
	Count    int    `json:"count"`
	// Start is the time from the beginning of the reconcile to the first of the requests, in microseconds. Micros is the
	// time from the first request to the last response.
	Start  int64 `json:"start,omitempty"`
	Micros int64 `json:"micros,omitempty"`
}

// NextReconcile contains the time when the next reconcile is due.
type NextReconcile struct {
	At time.Time `json:"at"`
}

// List is the response of the server for an item.
type List struct {
	Deployer Deployer `json:"deployer"`
	// Reconciles are in the order in which they began.
	Reconciles []Reconcile `json:"reconciles"`
}

// Deployer identifies the deployer that serves a history.
type Deployer struct {
	Name     string `json:"name"`
	Identity string `json:"identity,omitempty"`
	Version  string `json:"version,omitempty"`
	Type     string `json:"type"`
}

// encode returns the reconcile as JSON of at most maxReconcileBytes bytes. If the JSON would be too long, encode omits
// calls and hooks. If it is still too long, encode also omits phases. In each list, the last entries are omitted first.
func (r *Reconcile) encode() []byte {
	for {
		raw, err := json.Marshal(r)
		if err != nil {
			return nil
		}
		if len(raw) <= maxReconcileBytes {
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
