// SPDX-License-Identifier: Apache-2.0

package soak_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/deployers/manifest"
	"github.com/deployerkit/deployerkit/deployers/mock"
)

var phases = lsv1alpha1.DeployItemPhases

// dataKey is the key of all values: in ConfigMaps and in exports.
const dataKey = "value"

// names is how many objects an item may have.
const names = 4

// kind is a type of items.
type kind struct {
	name string
	t    lsv1alpha1.DeployItemType
	// config is the configuration of what is wanted.
	config func(w *env, item string, want want) map[string]any
	// objects is set if the items have objects in the target.
	objects bool
	// exports is set if the items export a value.
	exports bool
}

var kinds = []kind{
	{name: "mock", t: mock.Type, config: mockConfig, exports: true},
	{name: "manifest", t: manifest.Type, config: manifestConfig, objects: true, exports: true},
	{name: "children", t: childrenType, config: newChildrenConfig, objects: true},
}

// want is what the configuration of an item requests.
type want struct {
	// value is exported; the last part of objects.
	value string
	// objects are the values of ConfigMaps by the end of their names.
	objects map[string]string
	// outcome is the phase with which a job ends. Progressing means that it does not end by itself. Only for mock
	// items.
	outcome lsv1alpha1.DeployItemPhase
	// timeout ends a job that does not end by itself. If it is zero, Landscaper's default applies.
	timeout time.Duration
	// invalid is set if the configuration has an unknown field.
	invalid bool
}

// open reports whether a job does not end by itself.
func (w want) open() bool { return w.outcome == phases.Progressing && w.timeout == 0 && !w.invalid }

// deserves returns the phase with which a job ends, and its error code.
func (w want) deserves() (lsv1alpha1.DeployItemPhase, lsv1alpha1.ErrorCode) {
	switch {
	case w.invalid:
		return phases.Failed, lsv1alpha1.ErrorConfigurationProblem
	case w.outcome == phases.Progressing:
		return phases.Failed, lsv1alpha1.ErrorTimeout
	}
	return w.outcome, ""
}

// item is what an item's actor knows of it.
type item struct {
	name string
	kind kind
	// exists is set if the item was created and not deleted since.
	exists bool
	want   want
	// job is the last job that was handed out.
	job string
	// calledOff is set if the last job was interrupted or aborted, and may or may not have ended before.
	calledOff bool
	// made counts the configurations, so that each has its own value.
	made int
}

// newWant returns a random configuration of an item.
func (it *item) newWant(random *rand.Rand) want {
	it.made++
	out := want{value: fmt.Sprint(it.made), outcome: phases.Succeeded, objects: map[string]string{}}
	if it.kind.objects {
		out.objects["0"] = out.value
		for i := 1; i < names; i++ {
			if random.IntN(2) == 0 {
				out.objects[fmt.Sprint(i)] = fmt.Sprintf("%s-%d", out.value, random.IntN(3))
			}
		}
		return out
	}
	if random.IntN(8) == 0 {
		out.outcome = phases.Failed
	}
	return out
}

// object is the name of an object of an item.
func object(item, end string) string { return item + "-" + end }

func mockConfig(_ *env, _ string, want want) map[string]any {
	return map[string]any{
		"apiVersion": "mock.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration",
		"phase": want.outcome, "export": map[string]any{dataKey: want.value},
	}
}

func manifestConfig(w *env, item string, want want) map[string]any {
	manifests := []any{}
	for _, end := range sorted(want.objects) {
		manifests = append(manifests, map[string]any{"manifest": map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": w.Namespace, "name": object(item, end)},
			"data": map[string]any{dataKey: want.objects[end]},
		}})
	}
	return map[string]any{
		"apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "ProviderConfiguration", "manifests": manifests,
		"exports": map[string]any{"exports": []any{map[string]any{
			"key": dataKey, "jsonPath": "data." + dataKey,
			"fromResource": map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": w.Namespace, "name": object(item, "0")},
		}}},
	}
}

func newChildrenConfig(_ *env, _ string, want want) map[string]any {
	return map[string]any{"apiVersion": "soak.deployerkit.dev/v1", "kind": "Children", "maps": want.objects}
}

// config is the configuration of an item.
func (w *env) config(it *item) map[string]any {
	out := it.kind.config(w, it.name, it.want)
	if it.want.invalid {
		out["nonsense"] = true
	}
	return out
}

// sorted are the keys of a map in their order.
func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
