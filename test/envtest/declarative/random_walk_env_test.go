// SPDX-License-Identifier: Apache-2.0

package declarative_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/declarative"
)

// squatter is the annotation of an object that another client created under a name that the deployer uses.
const squatter = "example.com/squatter"

// createItem creates an item and requests its first run.
func (w *randomWalk) createItem(ctx context.Context, name string, wanted map[string]data) error {
	di := w.Landscaper.Item(w.Namespace, name, w.Type, config(wanted))
	di.Spec.Target = &lsv1alpha1.ObjectReference{Name: "cluster"}
	return w.Landscaper.Deploy(ctx, di)
}

// listObjects returns all ConfigMaps and Secrets in the namespace of the world.
func (w *randomWalk) listObjects(ctx context.Context) ([]client.Object, error) {
	configMaps, secrets := &corev1.ConfigMapList{}, &corev1.SecretList{}
	if err := w.Client.List(ctx, configMaps, client.InNamespace(w.Namespace)); err != nil {
		return nil, err
	}
	if err := w.Client.List(ctx, secrets, client.InNamespace(w.Namespace)); err != nil {
		return nil, err
	}
	var out []client.Object
	for i := range configMaps.Items {
		out = append(out, &configMaps.Items[i])
	}
	for i := range secrets.Items {
		out = append(out, &secrets.Items[i])
	}
	return out, nil
}

// getData returns the data of a ConfigMap or a Secret.
func getData(obj client.Object) data {
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		return o.Data
	case *corev1.Secret:
		out := data{}
		for key, value := range o.Data {
			out[key] = string(value)
		}
		return out
	}
	return nil
}

// setValue sets a value in a ConfigMap or a Secret.
func setValue(obj client.Object, key, value string) {
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		if o.Data == nil {
			o.Data = data{}
		}
		o.Data[key] = value
	case *corev1.Secret:
		if o.Data == nil {
			o.Data = map[string][]byte{}
		}
		o.Data[key] = []byte(value)
	}
}

// removeValues removes all values from a ConfigMap or a Secret.
func removeValues(obj client.Object) {
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		o.Data = nil
	case *corev1.Secret:
		o.Data = nil
	}
}

// changeChild edits or deletes a child as another client would.
func (w *randomWalk) changeChild(ctx context.Context, random *rand.Rand) error {
	all, err := w.listObjects(ctx)
	if err != nil {
		return err
	}
	pick, what := random.IntN(1<<20), random.IntN(6)
	if len(all) == 0 {
		return nil
	}
	child := all[pick%len(all)]
	if child.GetLabels()[ownership.LabelItem] == "" || !w.canChange(child) {
		return nil
	}
	switch what {
	case 0:
		setValue(child, "key", "theirs")
	case 1:
		setValue(child, "theirs", "value")
	case 2:
		removeValues(child)
	case 3:
		child.SetLabels(nil)
	case 4:
		// This replaces all annotations, including those of the library.
		child.SetAnnotations(map[string]string{"example.com/noticed": "true"})
	default:
		return ignoreRaces(w.Client.Delete(ctx, child, client.Preconditions{UID: new(child.GetUID())}))
	}
	return ignoreRaces(w.Client.Update(ctx, child, client.FieldOwner("kubectl-edit")))
}

// canChange reports whether a child may be disturbed once more. It allows two disturbances. After a third disturbance
// in a short time, the deployer would assume that another client keeps overwriting the child. It would then delay the
// correction beyond the end of the walk.
func (w *randomWalk) canChange(child client.Object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := fmt.Sprintf("%T %s", child, child.GetName())
	w.hurt[name]++
	return w.hurt[name] <= 2
}

// resetChanges allows disturbances again after a restart, because a new deployer does not know of earlier disturbances.
func (w *randomWalk) resetChanges() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.hurt)
}

// createConflictingConfigMap creates a ConfigMap under a name that the deployer may use. It does not matter whether an
// item currently describes such a ConfigMap.
func (w *randomWalk) createConflictingConfigMap(ctx context.Context, random *rand.Rand) error {
	cm := &corev1.ConfigMap{Data: data{"key": "squatted"}}
	cm.Namespace, cm.Name = w.Namespace, declarative.Name(w.item(random), fmt.Sprintf("child-%d", random.IntN(walkNames)))
	cm.Annotations = map[string]string{squatter: "true"}
	return ignoreRaces(w.Client.Create(ctx, cm, client.FieldOwner("squatter")))
}

// ignoreRaces returns nil if err means that another client was faster.
func ignoreRaces(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// isAsWanted returns a function for Eventually. This function requires that exactly the children in the configurations
// of the items exist.
func (w *randomWalk) isAsWanted(ctx context.Context) func(Gomega) {
	return func(g Gomega) {
		all, err := w.listObjects(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		missing := map[string]data{} // missing children by kind and name
		owners := map[string]string{}
		for item, wanted := range w.wanted {
			di := w.Get(ctx, item)
			g.Expect(di.Status.Phase).To(Equal(phases.Succeeded), "%s: %+v", item, di.Status)
			g.Expect(w.status(ctx, item)(g)).To(HaveKeyWithValue("children", BeNumerically("==", 2*len(wanted))), "the status of %s; %q", item, w.listEvents(ctx, "Drift")(g))
			for name, values := range wanted {
				for _, kind := range []string{"ConfigMap ", "Secret "} {
					missing[kind+declarative.Name(item, name)] = values
					owners[kind+declarative.Name(item, name)] = string(di.UID)
				}
			}
		}
		for _, obj := range all {
			name := "Secret " + obj.GetName()
			if _, isConfigMap := obj.(*corev1.ConfigMap); isConfigMap {
				name = "ConfigMap " + obj.GetName()
			}
			wanted, isWanted := missing[name]
			if !isWanted {
				g.Expect(obj.GetLabels()).NotTo(HaveKey(ownership.LabelItem), "%s has an owner label, but belongs to no item", name)
				isForeign := obj.GetAnnotations()[squatter] != "" || strings.HasPrefix(obj.GetName(), "kube-root-ca")
				g.Expect(isForeign).To(BeTrue(), "%s was left behind: %v", name, obj)
				continue
			}
			delete(missing, name)
			g.Expect(obj.GetDeletionTimestamp()).To(BeNil(), name)
			g.Expect(obj.GetLabels()).To(HaveKeyWithValue(ownership.LabelItem, owners[name]), name)
			for key, value := range wanted {
				g.Expect(getData(obj)).To(HaveKeyWithValue(key, value), name)
			}
		}
		g.Expect(missing).To(BeEmpty())
	}
}
