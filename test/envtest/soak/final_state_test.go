// SPDX-License-Identifier: Apache-2.0

package soak_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/contract"
)

// snapshot contains all items and objects at one moment.
type snapshot struct {
	items      map[string]*lsv1alpha1.DeployItem
	configMaps map[string]*corev1.ConfigMap
	secrets    map[string]*corev1.Secret
}

// takeSnapshot reads all items and objects.
func (w *env) takeSnapshot(ctx context.Context) (*snapshot, error) {
	items, configMaps, secrets := &lsv1alpha1.DeployItemList{}, &corev1.ConfigMapList{}, &corev1.SecretList{}
	for _, list := range []client.ObjectList{items, configMaps, secrets} {
		if err := w.Client.List(ctx, list, client.InNamespace(w.Namespace)); err != nil {
			return nil, err
		}
	}
	s := &snapshot{items: map[string]*lsv1alpha1.DeployItem{}, configMaps: map[string]*corev1.ConfigMap{}, secrets: map[string]*corev1.Secret{}}
	for i := range items.Items {
		s.items[items.Items[i].Name] = &items.Items[i]
	}
	for i := range configMaps.Items {
		s.configMaps[configMaps.Items[i].Name] = &configMaps.Items[i]
	}
	for i := range secrets.Items {
		s.secrets[secrets.Items[i].Name] = &secrets.Items[i]
	}
	return s, nil
}

// getVersions returns the resource versions of all items and objects. If two snapshots have the same versions, nothing
// was written between them.
func (s *snapshot) getVersions() map[string]string {
	out := map[string]string{}
	for name, obj := range s.items {
		out["item "+name] = obj.ResourceVersion
	}
	for name, obj := range s.configMaps {
		out["ConfigMap "+name] = obj.ResourceVersion
	}
	for name, obj := range s.secrets {
		out["Secret "+name] = obj.ResourceVersion
	}
	return out
}

// listProblems lists the differences between the desired state and the actual state.
func (w *env) listProblems(ctx context.Context) ([]string, error) {
	s, err := w.takeSnapshot(ctx)
	if err != nil {
		return nil, err
	}
	out := w.checkForeignObjects(s)
	known := map[string]bool{"kube-root-ca.crt": true}
	for _, it := range w.items {
		di := s.items[it.name]
		if !it.exists {
			if di != nil {
				out = append(out, fmt.Sprintf("%s is deleted and not gone: %s", it.name, formatItem(di)))
			}
			continue
		}
		if di == nil {
			out = append(out, it.name+" does not exist")
			continue
		}
		for _, problem := range slices.Concat(it.checkStatus(di), it.checkExport(s, di), it.checkObjects(s, di)) {
			out = append(out, fmt.Sprintf("%s: %s: wanted %+v: %s", it.name, problem, it.want, formatItem(di)))
		}
		known[it.name+"-export"] = it.kind.exports
		for i := range names {
			known[object(it.name, fmt.Sprint(i))] = it.kind.objects
		}
	}
	for _, obj := range w.foreign {
		known[obj.GetName()] = true
	}
	for _, name := range slices.Concat(sortKeys(s.configMaps), sortKeys(s.secrets)) {
		if !known[name] && !s.isGarbage(name) {
			out = append(out, name+" has no owner and was left behind")
		}
	}
	return out, nil
}

// isGarbage reports whether a Secret belongs to an item that no longer exists. The garbage collector of Kubernetes,
// which does not run here, would delete such a Secret.
func (s *snapshot) isGarbage(name string) bool {
	secret := s.secrets[name]
	if secret == nil || len(secret.OwnerReferences) == 0 {
		return false
	}
	for _, di := range s.items {
		if di.UID == secret.OwnerReferences[0].UID {
			return false
		}
	}
	return true
}

// checkForeignObjects checks that objects that do not belong to the deployers were not changed.
func (w *env) checkForeignObjects(s *snapshot) (problems []string) {
	versions := s.getVersions()
	for _, obj := range w.foreign {
		kind := "ConfigMap "
		if _, isItem := obj.(*lsv1alpha1.DeployItem); isItem {
			kind = "item "
		}
		if versions[kind+obj.GetName()] != obj.GetResourceVersion() {
			problems = append(problems, kind+obj.GetName()+" is foreign and was touched")
		}
	}
	return problems
}

// checkStatus checks the result of the last job.
func (it *item) checkStatus(di *lsv1alpha1.DeployItem) (problems []string) {
	s := di.Status
	if s.JobID != it.job || s.JobIDFinished != it.job {
		problems = append(problems, "job "+it.job+" is not finished")
	}
	phase, code := it.want.getExpectedPhase()
	switch {
	case it.calledOff && s.Phase == phases.Failed:
	case s.Phase != phase:
		problems = append(problems, "the phase is not "+string(phase))
	case code != "" && (s.LastError == nil || !slices.Contains(s.LastError.Codes, code)):
		problems = append(problems, "there is no "+string(code))
	case phase == phases.Succeeded && s.LastError != nil:
		problems = append(problems, "there is an error")
	}
	if !slices.Equal(di.Finalizers, []string{lsv1alpha1.LandscaperFinalizer}) {
		problems = append(problems, "the finalizers are wrong")
	}
	if di.Annotations[lsv1alpha1.OperationAnnotation] != "" {
		problems = append(problems, "an operation is left")
	}
	if c := contract.GetCondition(s.Conditions, contract.ConditionBackground); c != nil && c.Status == lsv1alpha1.ConditionTrue {
		problems = append(problems, "a background run is owed")
	}
	return problems
}

// checkExport checks the export of an item. The item may have any export if its configuration is invalid, or if its
// last job was interrupted, aborted or timed out.
func (it *item) checkExport(s *snapshot, di *lsv1alpha1.DeployItem) []string {
	if !it.kind.exports || it.want.invalid || it.want.timeout > 0 || it.calledOff {
		return nil
	}
	secret := s.secrets[it.name+"-export"]
	wanted := fmt.Sprintf(`{%q:%q}`, dataKey, it.want.value)
	switch {
	case secret == nil:
		return []string{"there is no export"}
	case string(secret.Data[lsv1alpha1.DataObjectSecretDataKey]) != wanted:
		return []string{fmt.Sprintf("the export is %s", secret.Data[lsv1alpha1.DataObjectSecretDataKey])}
	case di.Status.ExportReference == nil || di.Status.ExportReference.Name != secret.Name:
		return []string{"the export is not referred to"}
	}
	return nil
}

// checkObjects checks the objects of an item. If the configuration is invalid, or if the last job was interrupted or
// aborted, the item may have the objects of any earlier configuration.
func (it *item) checkObjects(s *snapshot, di *lsv1alpha1.DeployItem) (problems []string) {
	if !it.kind.objects || it.want.invalid || it.calledOff {
		return nil
	}
	there := map[string]string{}
	for name, cm := range s.configMaps {
		if end, ok := strings.CutPrefix(name, it.name+"-"); ok {
			there[end] = cm.Data[dataKey]
			if len(cm.Data) != 1 || cm.DeletionTimestamp != nil || cm.Labels[ownership.LabelItem] != string(di.UID) {
				problems = append(problems, fmt.Sprintf("ConfigMap %s is wrong: %v, %v", name, cm.Data, cm.ObjectMeta))
			}
		}
	}
	if !maps.Equal(there, it.want.objects) {
		problems = append(problems, fmt.Sprintf("the objects are %v", there))
	}
	return problems
}
