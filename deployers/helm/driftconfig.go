// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// DriftConfig determines what happens when another client changes objects of the item.
type DriftConfig struct {
	// Mode is DriftCorrect (the default) or DriftWarn.
	Mode DriftMode `json:"mode,omitempty"`
	// Ignore selects fields and objects whose changes are neither corrected nor reported. An object is also ignored if
	// its chart sets the annotation AnnotationDrift to DriftIgnored.
	Ignore []DriftRule `json:"ignore,omitempty"`
}

// DriftMode determines what happens when another client changes an object.
type DriftMode string

const (
	// DriftCorrect corrects the change.
	DriftCorrect DriftMode = "Correct"
	// DriftWarn reports the change in an event and in the condition ConditionDrift. It is corrected by the next
	// deployment with changed inputs, and by the operation force-reconcile.
	DriftWarn DriftMode = "Warn"
)

const (
	// AnnotationDrift is an annotation of objects in charts. If its value is DriftIgnored, the deployer neither corrects
	// nor reports changes of the object by other clients.
	AnnotationDrift = "helm.deployerkit.dev/drift"
	// DriftIgnored is the value of AnnotationDrift that has an effect.
	DriftIgnored = "ignore"
	// ConditionDrift is the type of a condition that lists the objects which other clients have changed, if the mode is
	// DriftWarn.
	ConditionDrift lsv1alpha1.ConditionType = "Drift"
)

// DriftRule selects objects and fields. An empty selector matches all objects.
type DriftRule struct {
	// Group, Kind, Namespace and Name select objects. Empty fields match all values. The group of the core API is "core".
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// LabelSelector selects objects by their labels in the chart, in the form of kubectl.
	LabelSelector string `json:"labelSelector,omitempty"`
	// Paths are JSON pointers to fields, such as "/spec/replicas". Without paths, the rule applies to the whole object.
	Paths []string `json:"paths,omitempty"`
}

// maxDriftRules limits the number of rules of an item, and the number of paths of a rule.
const maxDriftRules = 100

// check validates the settings.
func (c DriftConfig) check() error {
	const path = "deployerkit.drift"
	if modes := []DriftMode{DriftCorrect, DriftWarn}; c.Mode != "" && !slices.Contains(modes, c.Mode) {
		return newConfigError(path+".mode", "is %q, want one of %q", c.Mode, modes)
	}
	if len(c.Ignore) > maxDriftRules {
		return newConfigError(path+".ignore", "has %d rules, at most %d are allowed", len(c.Ignore), maxDriftRules)
	}
	for i, rule := range c.Ignore {
		at := fmt.Sprintf("%s.ignore[%d]", path, i)
		if _, err := labels.Parse(rule.LabelSelector); err != nil {
			return newConfigError(at+".labelSelector", "%q is not a label selector", rule.LabelSelector)
		}
		if len(rule.Paths) > maxDriftRules {
			return newConfigError(at+".paths", "has %d paths, at most %d are allowed", len(rule.Paths), maxDriftRules)
		}
		for k, pointer := range rule.Paths {
			if !strings.HasPrefix(pointer, "/") || pointer == "/" {
				return newConfigError(fmt.Sprintf("%s.paths[%d]", at, k), `%q is not a JSON pointer such as "/spec/replicas"`, pointer)
			}
		}
	}
	return nil
}

// matches reports whether the rule selects an object.
func (rule DriftRule) matches(object *unstructured.Unstructured) bool {
	group := object.GroupVersionKind().Group
	if group == "" {
		group = "core"
	}
	for _, field := range [][2]string{{rule.Group, group}, {rule.Kind, object.GetKind()}, {rule.Namespace, object.GetNamespace()}, {rule.Name, object.GetName()}} {
		if field[0] != "" && field[0] != field[1] {
			return false
		}
	}
	selector, err := labels.Parse(rule.LabelSelector)
	return err == nil && selector.Matches(labels.Set(object.GetLabels()))
}

// ignored returns the pointers of the fields of an object that are ignored, or all = true for the whole object.
func (c DriftConfig) ignored(object *unstructured.Unstructured) (pointers []string, all bool) {
	if object.GetAnnotations()[AnnotationDrift] == DriftIgnored {
		return nil, true
	}
	for _, rule := range c.Ignore {
		if !rule.matches(object) {
			continue
		}
		if len(rule.Paths) == 0 {
			return nil, true
		}
		pointers = append(pointers, rule.Paths...)
	}
	return pointers, false
}

// inputsText returns the settings that are part of the inputs of a deployment.
func (e Extension) inputsText() string {
	e.Drift = DriftConfig{} // concerns only corrections
	raw, err := json.Marshal(e)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}
