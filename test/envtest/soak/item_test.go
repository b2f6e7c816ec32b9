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

// dataKey is the key of all values, in ConfigMaps as well as in exports.
const dataKey = "value"

// names is the maximum number of objects of an item.
const names = 4

// kind describes the items of one deployer.
type kind struct {
	name string
	t    lsv1alpha1.DeployItemType
	// config returns the configuration of an item for the desired state.
	config func(w *env, item string, want want) map[string]any
	// objects is set if the items have objects in the target.
	objects bool
	// exports is set if the items export a value.
	exports bool
}

var kinds = []kind{
	{name: "mock", t: mock.Type, config: newMockConfig, exports: true},
	{name: "manifest", t: manifest.Type, config: manifestConfig, objects: true, exports: true},
	{name: "children", t: childrenType, config: newChildrenConfig, objects: true},
	{name: "graph", t: graphType, config: newChildrenConfig, objects: true, exports: true},
}

// want is the desired state of an item.
type want struct {
	// value is the value that the item exports. The values of the item's objects end with this value.
	value string
	// objects contains the values of the ConfigMaps. The keys are the ends of the names of the ConfigMaps.
	objects map[string]string
	// outcome is the phase with which a job must end. If it is Progressing, the job does not end by itself. Only items
	// of the mock deployer use this field.
	outcome lsv1alpha1.DeployItemPhase
	// timeout ends a job that does not end by itself. If timeout is zero, Landscaper's default applies.
	timeout time.Duration
	// invalid is set if the configuration has an unknown field.
	invalid bool
}

// isOpen reports whether a job with this desired state does not end by itself.
func (w want) isOpen() bool { return w.outcome == phases.Progressing && w.timeout == 0 && !w.invalid }

// getExpectedPhase returns the phase in which a job must end, and the error code.
func (w want) getExpectedPhase() (lsv1alpha1.DeployItemPhase, lsv1alpha1.ErrorCode) {
	switch {
	case w.invalid:
		return phases.Failed, lsv1alpha1.ErrorConfigurationProblem
	case w.outcome == phases.Progressing:
		return phases.Failed, lsv1alpha1.ErrorTimeout
	}
	return w.outcome, ""
}

// item contains the data that an actor stores about one of its items.
type item struct {
	name string
	kind kind
	// exists is set if the item was created and has not been deleted since.
	exists bool
	want   want
	// job is the ID of the last job.
	job string
	// calledOff is set if the last job was interrupted or aborted. The job may have ended before that.
	calledOff bool
	// made is the number of configurations that were created so far. It makes the value of each configuration unique.
	made int
}

// newWant returns a random desired state for an item.
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

// object returns the name of an object of an item.
func object(item, end string) string { return item + "-" + end }

func newMockConfig(_ *env, _ string, want want) map[string]any {
	return map[string]any{
		"apiVersion": "mock.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration",
		"phase": want.outcome, "export": map[string]any{dataKey: want.value},
	}
}

func manifestConfig(w *env, item string, want want) map[string]any {
	manifests := []any{}
	for _, end := range sortKeys(want.objects) {
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

// config returns the configuration of an item.
func (w *env) config(it *item) map[string]any {
	out := it.kind.config(w, it.name, it.want)
	if it.want.invalid {
		out["nonsense"] = true
	}
	return out
}

// sortKeys returns the sorted keys of a map.
func sortKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
