// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply/absence"
	"github.com/deployerkit/deployerkit/apply/readiness"
	"github.com/deployerkit/deployerkit/managed"
)

const (
	clusterLandscaper = "landscaper"
	clusterTarget     = "target"

	maxOwned = 5 // the maximum number of levels of dependents below an object
)

// ownedBy maps a kind to the kinds of the dependents that a tree shows.
var ownedBy = map[schema.GroupKind][]schema.GroupVersionKind{
	{Group: "apps", Kind: "Deployment"}:  {{Group: "apps", Version: "v1", Kind: "ReplicaSet"}},
	{Group: "apps", Kind: "ReplicaSet"}:  {{Version: "v1", Kind: "Pod"}},
	{Group: "apps", Kind: "StatefulSet"}: {{Version: "v1", Kind: "Pod"}},
	{Group: "apps", Kind: "DaemonSet"}:   {{Version: "v1", Kind: "Pod"}},
	{Group: "batch", Kind: "CronJob"}:    {{Group: "batch", Version: "v1", Kind: "Job"}},
	{Group: "batch", Kind: "Job"}:        {{Version: "v1", Kind: "Pod"}},
}

// readObject returns the node of an object in the target. If the client `live` is nil, the node contains only
// information from the status of the item.
func (r *treeReader) readObject(ctx context.Context, live client.Reader, o Object) *TreeNode {
	stored := &metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}
	if live == nil || o.State == stateFormer || o.State == stateMayRemain {
		n := r.newNode(o.Kind, clusterTarget, stored)
		if n != nil {
			n.Phase, n.Message = o.State, o.Reason
		}
		return n
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(schema.FromAPIVersionAndKind(o.APIVersion, o.Kind))
	err := live.Get(ctx, types.NamespacedName{Namespace: o.Namespace, Name: o.Name}, obj)
	if err == nil {
		return r.readLiveObject(ctx, live, obj, 0)
	}
	n := r.newNode(o.Kind, clusterTarget, stored)
	if n == nil {
		return nil
	}
	switch absence.ClassifyError(absence.Object{Kind: obj.GroupVersionKind().GroupKind(), Name: o.Name, HasFinished: o.MayBeGone}, err) {
	case absence.MeaningFinished:
		n.Phase = "Finished"
	case absence.MeaningGone:
		n.Phase, n.Failed = "Missing", o.State != stateUnwritten && o.State != stateDeleting
	default:
		n.Phase, n.Message = "Unknown", shortenText(err.Error())
	}
	return n
}

// newRules returns the rules by which deployers decide whether an object is ready.
func (r *treeReader) newRules(ctx context.Context, live client.Reader) readiness.Rules {
	return readiness.Rules{
		Grace: managed.DefaultStatusGrace, Now: r.o.Clock.Now(),
		GetBinding: func(claim *unstructured.Unstructured) readiness.ClaimBinding {
			class := &unstructured.Unstructured{}
			class.SetGroupVersionKind(schema.GroupVersionKind{Group: "storage.k8s.io", Version: "v1", Kind: "StorageClass"})
			if err := live.Get(ctx, types.NamespacedName{Name: readiness.GetClassName(claim)}, class); err != nil {
				return readiness.BindingUnknown
			}
			mode, _, _ := unstructured.NestedString(class.Object, "volumeBindingMode") // not a string only if the server is faulty
			return cmp.Or(readiness.ClaimBinding(mode), readiness.BindingImmediate)
		},
	}
}

// readLiveObject returns the node of an object that was read from the target, with the nodes of its dependents.
func (r *treeReader) readLiveObject(ctx context.Context, live client.Reader, obj *unstructured.Unstructured, depth int) *TreeNode {
	n := r.newNode(obj.GetKind(), clusterTarget, obj)
	if n == nil {
		return nil
	}
	result := r.newRules(ctx, live).CheckObject(obj)
	n.Phase, n.Failed = shortenName(string(result.State)), result.State == readiness.StateFailed
	if !result.IsReady() {
		n.Message = shortenText(result.Message)
	}
	if depth >= maxOwned {
		return n
	}
	for _, kind := range ownedBy[obj.GroupVersionKind().GroupKind()] {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := live.List(ctx, list, client.InNamespace(obj.GetNamespace()), client.Limit(maxChildren)); err != nil {
			r.recordUnknown(fmt.Sprintf("%ss of %s %s", kind.Kind, obj.GetKind(), shortenName(obj.GetName())), err)
			continue
		}
		for i := range list.Items {
			if owner := metav1.GetControllerOf(&list.Items[i]); owner != nil && owner.UID == obj.GetUID() {
				n.add(r.readLiveObject(ctx, live, &list.Items[i], depth+1))
			}
		}
	}
	return n
}
