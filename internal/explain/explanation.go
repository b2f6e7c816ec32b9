// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/history"
)

// These constants are the apiVersion and the kinds of the output. As long as the apiVersion stays the same, fields may
// be added, but not changed or removed.
const (
	APIVersion      = "explain.deployerkit.dev/v1alpha1"
	KindExplanation = "Explanation"
	KindTree        = "Tree"
)

// Explanation contains everything that is known about a deploy item.
type Explanation struct {
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"`
	Time       metav1.Time `json:"time"`

	Item        Item                `json:"item"`
	Revision    Revision            `json:"revision"`
	Decision    Decision            `json:"decision"`
	Responsible Responsible         `json:"responsible"`
	Waits       []Wait              `json:"waits,omitempty"`
	Times       Times               `json:"times"`
	Outcome     Outcome             `json:"outcome"`
	Hooks       []HookEffect        `json:"hooks,omitempty"`
	Objects     *Objects            `json:"objects,omitempty"`
	Graph       *Graph              `json:"graph,omitempty"`
	Release     *Release            `json:"release,omitempty"`
	NextJob     string              `json:"nextJob"`
	Advice      []Advice            `json:"advice,omitempty"`
	History     []history.Reconcile `json:"history,omitempty"`
	Unknown     []Unknown           `json:"unknown,omitempty"`
}

// Item identifies the deploy item and summarizes its state.
type Item struct {
	Namespace          string       `json:"namespace"`
	Name               string       `json:"name"`
	Type               string       `json:"type"`
	Phase              string       `json:"phase,omitempty"`
	Generation         int64        `json:"generation"`
	ObservedGeneration int64        `json:"observedGeneration"`
	Created            metav1.Time  `json:"created"`
	Deleted            *metav1.Time `json:"deleted,omitempty"`
}

// Revision is the revision of the contract that the item follows.
type Revision struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// Decision describes whether the contract requires a run of the item now, and why.
type Decision struct {
	Due    bool   `json:"due"`
	Reason string `json:"reason"`
	Why    string `json:"why"`
	// Action is what the run does: reconcile, delete, force-reconcile or abort. It is empty if no run may take place.
	Action string `json:"action,omitempty"`
	// Details are further facts about the decision.
	Details []string `json:"details,omitempty"`
}

// Responsible describes which deployer is responsible for the item.
type Responsible struct {
	// Deployer is the deployer that last processed the item.
	Deployer *Deployer `json:"deployer,omitempty"`
	// Target is the Target of the item.
	Target *Target `json:"target,omitempty"`
	// Registrations lists the known deployers. If there are too many, it lists those that are most likely to be
	// responsible, and Omitted is the number of the others.
	Registrations []Registration `json:"registrations,omitempty"`
	Omitted       int            `json:"omitted,omitempty"`
	// Summary is a sentence about the responsible deployer.
	Summary string `json:"summary"`
}

// Deployer identifies a deployer.
type Deployer struct {
	Name     string `json:"name"`
	Identity string `json:"identity,omitempty"`
	Version  string `json:"version,omitempty"`
}

// Target describes the Target of the item.
type Target struct {
	Name  string `json:"name"`
	Type  string `json:"type,omitempty"`
	State string `json:"state"` // found, missing or unknown
}

// Registration describes a known deployer, and whether the deployer is responsible for the item.
type Registration struct {
	// Source is the object that contains the registration: a lease or a DeployerRegistration.
	Source string `json:"source"`
	Name   string `json:"name"`
	// Responsible is yes, no or unknown. Why explains a value other than yes.
	Responsible string `json:"responsible"`
	Why         string `json:"why,omitempty"`
	// Holder is the replica that holds the lease. Renewed is the time when the lease was last renewed.
	Holder  string       `json:"holder,omitempty"`
	Renewed *metav1.Time `json:"renewed,omitempty"`
	// Working is false if the lease has expired or no replica holds it.
	Working bool `json:"working"`
}

// Wait is something that the item waits for.
type Wait struct {
	For   string       `json:"for"`
	Since *metav1.Time `json:"since,omitempty"`
}

// Times contains the times at which something will happen to the item.
type Times struct {
	Deadline                *metav1.Time `json:"deadline,omitempty"`
	NextReconcile           *metav1.Time `json:"nextReconcile,omitempty"`
	NextContinuousReconcile *metav1.Time `json:"nextContinuousReconcile,omitempty"`
	// Notes explains why times are missing.
	Notes []string `json:"notes,omitempty"`
}

// Outcome describes how the last run ended, or the state of the current run.
type Outcome struct {
	Phase      string       `json:"phase,omitempty"`
	Started    *metav1.Time `json:"started,omitempty"`
	Finished   *metav1.Time `json:"finished,omitempty"`
	FirstError *Error       `json:"firstError,omitempty"`
	LastError  *Error       `json:"lastError,omitempty"`
}

// Error is an error from the status of the item.
type Error struct {
	Operation string       `json:"operation,omitempty"`
	Reason    string       `json:"reason,omitempty"`
	Message   string       `json:"message,omitempty"`
	Codes     []string     `json:"codes,omitempty"`
	Since     *metav1.Time `json:"since,omitempty"`
}

// HookEffect is the effect of a hook on the item.
type HookEffect struct {
	Hook   string       `json:"hook"`
	Effect string       `json:"effect"`
	At     *metav1.Time `json:"at,omitempty"`
}

// Objects contains the objects of the item.
type Objects struct {
	// Counts maps each state to the number of objects in this state.
	Counts map[string]int `json:"counts"`
	// Listed contains the objects. Objects that are not ready come first. Omitted is the number of objects that are not
	// listed.
	Listed  []Object `json:"listed,omitempty"`
	Omitted int      `json:"omitted,omitempty"`
	// Drift describes the changes that other clients made to the objects, the newest last.
	Drift []string `json:"drift,omitempty"`
}

// Object is an object that the item owns.
type Object struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	State      string `json:"state"`
	Reason     string `json:"reason,omitempty"`
	// MayBeGone reports whether the object disappears after it has finished its work, such as a Job.
	MayBeGone bool `json:"mayBeGone,omitempty"`
}

// Graph contains the states of the components of a state graph.
type Graph struct {
	Nodes   []Node `json:"nodes"`
	Omitted int    `json:"omitted,omitempty"`
}

// Node is a component of a graph.
type Node struct {
	Name      string   `json:"name"`
	State     string   `json:"state"`
	Reason    string   `json:"reason,omitempty"`
	BlockedBy []string `json:"blockedBy,omitempty"`
	// Requires lists the components that this component requires, as far as the status records them.
	Requires []string `json:"requires,omitempty"`
}

// Release is the Helm release of an item of the Helm deployer, after the last operation.
type Release struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	// Revision and Status are those of the last revision. They are not set if the item has no release record.
	Revision     int    `json:"revision,omitempty"`
	Status       string `json:"status,omitempty"`
	Chart        string `json:"chart,omitempty"`
	ChartVersion string `json:"chartVersion,omitempty"`
	ChartDigest  string `json:"chartDigest,omitempty"`
	// Failure describes why the last operation failed.
	Failure string `json:"failure,omitempty"`
}

// String describes the release.
func (r *Release) String() string {
	parts := []string{}
	if r.Revision > 0 {
		parts = append(parts, fmt.Sprintf("revision %d", r.Revision))
	}
	if r.Status != "" {
		parts = append(parts, r.Status)
	}
	if r.Chart != "" {
		parts = append(parts, "chart "+strings.TrimSpace(r.Chart+" "+r.ChartVersion))
	}
	return strings.Join(parts, ", ")
}

// Advice is a recommendation for the state of an item.
type Advice struct {
	// Symptom is the title of a section in docs/troubleshooting.md.
	Symptom string `json:"symptom"`
	Text    string `json:"text"`
}

// Unknown describes a part of the facts that could not be read.
type Unknown struct {
	Part string `json:"part"`
	Why  string `json:"why"`
}
