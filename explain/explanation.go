// SPDX-License-Identifier: Apache-2.0

package explain

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/history"
)

// The apiVersion and the kinds of the output. Within a version, fields are only added.
const (
	APIVersion      = "explain.deployerkit.dev/v1alpha1"
	KindExplanation = "Explanation"
	KindTree        = "Tree"
)

// Explanation is everything that is known about a deploy item.
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

// Item is the name of the deploy item.
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

// Decision is what has to be done with the item now by the contract.
type Decision struct {
	Due    bool   `json:"due"`
	Reason string `json:"reason"`
	Why    string `json:"why"`
	// Action is what a run would do: reconcile, delete, force-reconcile or abort. It is empty if nothing may run.
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
	// Registrations are the known deployers.
	Registrations []Registration `json:"registrations,omitempty"`
	// Summary is one sentence about the responsible deployer.
	Summary string `json:"summary"`
}

// Deployer identifies a deployer.
type Deployer struct {
	Name     string `json:"name"`
	Identity string `json:"identity,omitempty"`
	Version  string `json:"version,omitempty"`
}

// Target is the part of a Target that matters for the item.
type Target struct {
	Name  string `json:"name"`
	Type  string `json:"type,omitempty"`
	State string `json:"state"` // found, missing or unknown
}

// Registration is a known deployer, and whether it is responsible for the item.
type Registration struct {
	// Source is the source of the registration: a lease or a DeployerRegistration.
	Source string `json:"source"`
	Name   string `json:"name"`
	// Responsible is yes, no or unknown. Why is the condition that is not met or not known.
	Responsible string `json:"responsible"`
	Why         string `json:"why,omitempty"`
	// Holder is the replica that holds the lease. Renewed is when it last renewed it.
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

// Times has the times of the next events.
type Times struct {
	Deadline                *metav1.Time `json:"deadline,omitempty"`
	NextReconcile           *metav1.Time `json:"nextReconcile,omitempty"`
	NextContinuousReconcile *metav1.Time `json:"nextContinuousReconcile,omitempty"`
	// Notes explain why a time is missing.
	Notes []string `json:"notes,omitempty"`
}

// Outcome describes how the last run ended, or the state of the current one.
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

// HookEffect is the effect of a hook on the item.
type HookEffect struct {
	Hook   string       `json:"hook"`
	Effect string       `json:"effect"`
	At     *metav1.Time `json:"at,omitempty"`
}

// Objects has the objects of the item by their state.
type Objects struct {
	// Counts has the number of objects by state.
	Counts map[string]int `json:"counts"`
	// Listed has the objects, starting with those that are not ready. Omitted is the number of further objects.
	Listed  []Object `json:"listed,omitempty"`
	Omitted int      `json:"omitted,omitempty"`
	// Drift has changes by other managers, the newest last.
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

// Advice is one recommendation for the state of an item.
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
