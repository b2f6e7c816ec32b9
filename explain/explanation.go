// SPDX-License-Identifier: Apache-2.0

package explain

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/history"
)

// The apiVersion and the kinds of the output. Fields are only added to a version.
const (
	APIVersion      = "explain.deployerkit.dev/v1alpha1"
	KindExplanation = "Explanation"
	KindTree        = "Tree"
)

// Explanation is all that is known about a deploy item.
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
	NextJob     string              `json:"nextJob"`
	Advice      []Advice            `json:"advice,omitempty"`
	History     []history.Reconcile `json:"history,omitempty"`
	Unknown     []Unknown           `json:"unknown,omitempty"`
}

// Item names the deploy item.
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

// Decision is what the contract wants of the item now.
type Decision struct {
	Due    bool   `json:"due"`
	Reason string `json:"reason"`
	Why    string `json:"why"`
	// Action is what a run would do: reconcile, delete, force-reconcile, abort, or empty if nothing may run.
	Action string `json:"action,omitempty"`
	// Details are further facts about the decision.
	Details []string `json:"details,omitempty"`
}

// Responsible says which deployer the item belongs to.
type Responsible struct {
	// Deployer is the deployer that worked on the item last.
	Deployer *Deployer `json:"deployer,omitempty"`
	// Target is the Target of the item.
	Target *Target `json:"target,omitempty"`
	// Registrations are the deployers that are known.
	Registrations []Registration `json:"registrations,omitempty"`
	// Summary is one sentence about who is responsible.
	Summary string `json:"summary"`
}

// Deployer names a deployer.
type Deployer struct {
	Name     string `json:"name"`
	Identity string `json:"identity,omitempty"`
	Version  string `json:"version,omitempty"`
}

// Target is a Target as far as the item is concerned.
type Target struct {
	Name  string `json:"name"`
	Type  string `json:"type,omitempty"`
	State string `json:"state"` // found, missing or unknown
}

// Registration is a deployer that is known, and whether it is responsible for the item.
type Registration struct {
	// Source is where it is known from: a lease or a DeployerRegistration.
	Source string `json:"source"`
	Name   string `json:"name"`
	// Responsible is yes, no or unknown. Why names the condition that fails or is not known.
	Responsible string `json:"responsible"`
	Why         string `json:"why,omitempty"`
	// Holder is the replica that holds the lease, and Renewed when it renewed it.
	Holder  string       `json:"holder,omitempty"`
	Renewed *metav1.Time `json:"renewed,omitempty"`
	// Working is false if the lease has expired or has no holder.
	Working bool `json:"working"`
}

// Wait is something that the item waits for.
type Wait struct {
	For   string       `json:"for"`
	Since *metav1.Time `json:"since,omitempty"`
}

// Times says when something happens next.
type Times struct {
	Deadline                *metav1.Time `json:"deadline,omitempty"`
	NextReconcile           *metav1.Time `json:"nextReconcile,omitempty"`
	NextContinuousReconcile *metav1.Time `json:"nextContinuousReconcile,omitempty"`
	// Notes say what is known where no time is.
	Notes []string `json:"notes,omitempty"`
}

// Outcome is how the last run ended, or how the current one goes.
type Outcome struct {
	Phase      string       `json:"phase,omitempty"`
	Started    *metav1.Time `json:"started,omitempty"`
	Finished   *metav1.Time `json:"finished,omitempty"`
	FirstError *Error       `json:"firstError,omitempty"`
	LastError  *Error       `json:"lastError,omitempty"`
}

// Error is an error of the status.
type Error struct {
	Operation string       `json:"operation,omitempty"`
	Reason    string       `json:"reason,omitempty"`
	Message   string       `json:"message,omitempty"`
	Codes     []string     `json:"codes,omitempty"`
	Since     *metav1.Time `json:"since,omitempty"`
}

// HookEffect is a hook that acted on the item.
type HookEffect struct {
	Hook   string       `json:"hook"`
	Effect string       `json:"effect"`
	At     *metav1.Time `json:"at,omitempty"`
}

// Objects are the objects of the item by their state.
type Objects struct {
	// Counts are the number of objects by state.
	Counts map[string]int `json:"counts"`
	// Listed are the objects, those that are not ready first. Omitted is how many more there are.
	Listed  []Object `json:"listed,omitempty"`
	Omitted int      `json:"omitted,omitempty"`
	// Drift are changes by others, newest last.
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
}

// Graph is the state of the components of a state graph.
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
}

// Advice is one thing to do about the state of an item.
type Advice struct {
	// Symptom is the section of docs/troubleshooting.md.
	Symptom string `json:"symptom"`
	Text    string `json:"text"`
}

// Unknown is a part that could not be read.
type Unknown struct {
	Part string `json:"part"`
	Why  string `json:"why"`
}
