// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/managed"
)

// checkOwners checks that no object of the chart belongs to another owner, before anything is written.
func checkOwners(ctx context.Context, r *run, op *operation) error {
	if op.settings.TakeOwnership {
		return nil
	}
	owners := &ownerChecker{Run: r.Managed, name: r.config.Name, namespace: r.config.Namespace}
	return owners.check(ctx, op.desired)
}

// ownerChecker checks to whom existing objects belong.
type ownerChecker struct {
	*managed.Run

	name, namespace string // of the release
}

// check checks that no object belongs to another owner. The objects in the inventory belong to the item.
func (o *ownerChecker) check(ctx context.Context, desired []apply.Desired) error {
	known := map[apply.Ref]bool{}
	for _, entry := range o.Inventory.Entries {
		known[versionless(entry.Ref())] = entry.UID != ""
	}
	for _, one := range desired {
		if known[refOf(o.Cluster, one.Object)] {
			continue
		}
		if err := o.checkOwner(ctx, one.Object); err != nil {
			return err
		}
	}
	return nil
}

// checkOwner checks that an object of the chart does not exist, or belongs to the release or the item.
func (o *ownerChecker) checkOwner(ctx context.Context, object *unstructured.Unstructured) error {
	ref := refOf(o.Cluster, object)
	ref.APIVersion = object.GetAPIVersion()
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(ref.GVK())
	err := o.Cluster.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, live)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) { // a kind that is not served yet has no objects
		return nil
	}
	if err != nil {
		return fmt.Errorf("get %s: %w", ref, err)
	}
	if owner := o.findForeignOwner(live); owner != "" {
		return newConfigError("chart", "%s exists already and belongs to %s: delete it, or set takeOwnership", ref, owner)
	}
	return nil
}

// findForeignOwner describes the owner of an object. It returns "" if the object belongs to this release or item.
func (o *ownerChecker) findForeignOwner(live metav1.Object) string {
	if owner, owned := ownership.GetOwner(live); owned && owner.IsSameItem(o.Owner) {
		return ""
	}
	annotations := live.GetAnnotations()
	name, namespace := annotations[annotationReleaseName], annotations[annotationReleaseNamespace]
	switch {
	case live.GetLabels()[labelManagedBy] != managedByHelm || name == "":
		return unknownOwner
	case name == o.name && namespace == o.namespace:
		return ""
	}
	return fmt.Sprintf("release %s in namespace %s", name, namespace)
}

// refOf returns a reference to an object of the chart with the API group instead of the API version. The reference to a
// cluster-scoped object has no namespace, even if the object has one.
func refOf(c *managed.Cluster, object *unstructured.Unstructured) apply.Ref {
	ref := apply.ToRef(object)
	if mapping, err := c.GetMapping(ref.GVK()); err == nil && mapping.Scope.Name() == meta.RESTScopeNameRoot {
		ref.Namespace = ""
	}
	return versionless(ref)
}

// versionless returns a reference with the API group instead of the API version.
func versionless(ref apply.Ref) apply.Ref {
	ref.APIVersion = ref.GVK().Group
	return ref
}

// markForRelease adds the label and the annotations with which Helm marks the objects of a release.
func markForRelease(object *unstructured.Unstructured, name, namespace string) {
	labels, annotations := object.GetLabels(), object.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels[labelManagedBy] = managedByHelm
	annotations[annotationReleaseName], annotations[annotationReleaseNamespace] = name, namespace
	object.SetLabels(labels)
	object.SetAnnotations(annotations)
}
