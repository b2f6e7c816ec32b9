// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply/absence"
)

// cluster sends requests for objects to the API server. It executes the steps that functions of the type decision
// return. It does not choose the steps itself.
type cluster struct {
	client client.Client
	prover *absence.Prover
}

// strict makes the API server reject a field that the schema of the kind does not contain, as it does for server-side
// apply. By default, it drops such a field silently.
const strict = client.FieldValidation(metav1.FieldValidationStrict)

// do sends the request of a step. It returns the object in the answer, or nil if the answer contains none. If the error
// leaves open whether the object exists, do finds out why (see absence.Prover).
func (c cluster) do(ctx context.Context, s step) (*unstructured.Unstructured, error) {
	live, err := c.send(ctx, s)
	kind := s.known.Ref().GVK().GroupKind()
	if s.known.want != nil {
		return live, c.prover.Find(ctx, kind, err)
	}
	return live, c.prover.Explain(ctx, kind, err)
}

// send sends the request of a step.
func (c cluster) send(ctx context.Context, s step) (*unstructured.Unstructured, error) {
	ref := s.known.Ref()
	switch s.effect {
	case effectRead:
		return c.read(ctx, ref)
	case effectReadMetadata:
		return c.readMetadata(ctx, ref)
	case effectCreate:
		body := s.body.DeepCopy()
		return body, c.client.Create(ctx, body, client.FieldOwner(s.manager), strict)
	case effectApply:
		return c.apply(ctx, s)
	case effectUpdate:
		return s.body, s.strictly(func(validation client.FieldValidation) error {
			return c.client.Update(ctx, s.body, &client.UpdateOptions{FieldManager: s.manager, DryRun: s.dryRun()}, validation)
		})
	case effectPatch, effectMerge:
		return c.merge(ctx, s)
	case effectTakeOver:
		return nil, c.client.Patch(ctx, ref.empty(), client.RawPatch(types.JSONPatchType, s.rename))
	case effectDelete:
		return nil, c.delete(ctx, ref, s.uid, s.version)
	case effectAsk, effectFindOwners:
	}
	return nil, fmt.Errorf("there is no request for the effect %q", s.effect)
}

// read returns the current object in the cluster.
func (c cluster) read(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	live := ref.empty()
	return live, c.client.Get(ctx, ref.Key(), live)
}

// readMetadata returns the metadata of an object.
func (c cluster) readMetadata(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(ref.GVK())
	if err := c.client.Get(ctx, ref.Key(), live); err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	return &unstructured.Unstructured{Object: content}, err
}

// apply sends an object by server-side apply.
func (c cluster) apply(ctx context.Context, s step) (*unstructured.Unstructured, error) {
	body := s.body.DeepCopy()
	if s.uid != "" {
		body.SetUID(s.uid)
	}
	if s.version != "" {
		body.SetResourceVersion(s.version)
	}
	options := &client.ApplyOptions{FieldManager: s.manager, DryRun: s.dryRun()}
	if s.force {
		options.Force = &s.force
	}
	return body, c.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(body), options)
}

// merge sends a JSON merge patch.
func (c cluster) merge(ctx context.Context, s step) (*unstructured.Unstructured, error) {
	obj := s.known.Ref().empty()
	data, err := json.Marshal(s.patch)
	if err != nil {
		return nil, invalid(s.known.Ref(), "", "the patch is not JSON: %v", err)
	}
	send := func(validation client.FieldValidation) error {
		options := &client.PatchOptions{FieldManager: s.manager, DryRun: s.dryRun(), FieldValidation: string(validation)}
		return c.client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, data), options)
	}
	if !s.strict {
		return obj, send("")
	}
	return obj, s.strictly(send)
}

// strictly sends a strict request. If the API server does not know a field of the object in the cluster, but knows all
// fields of the manifest and of patchAfterDeployment, strictly sends the request again, and the API server drops the
// field. A newer API server of the same cluster may have stored such a field.
func (s step) strictly(send func(client.FieldValidation) error) error {
	err := send(strict)
	if err == nil {
		return nil
	}
	unknown := unknownFields(err.Error())
	if len(unknown) == 0 || s.known.want == nil || slices.ContainsFunc(unknown, s.states) {
		return err
	}
	return send(client.FieldValidation(metav1.FieldValidationIgnore))
}

// states reports whether the manifest or patchAfterDeployment contains a field.
func (s step) states(path string) bool {
	return contains(s.known.want.Object.Object, path) || contains(s.known.want.PatchAfterDeployment, path)
}

// dryRun returns the option DryRun for the request of the step.
func (s step) dryRun() []string {
	if s.dry {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// delete asks the API server to delete the object, provided that the object has the given UID. If version is not empty,
// the object must also have that resource version. The request makes the garbage collector delete the dependent
// objects, because the default for some kinds is to keep dependent objects.
func (c cluster) delete(ctx context.Context, ref Ref, uid types.UID, version string) error {
	only := client.Preconditions{UID: &uid}
	if version != "" {
		only.ResourceVersion = &version
	}
	return c.client.Delete(ctx, ref.empty(), only, client.PropagationPolicy(metav1.DeletePropagationBackground))
}

// list returns the objects of a kind, in one namespace or in all namespaces, as inventory entries. If the cluster serves
// the kind only in another version, list uses that version. It returns nothing if the kind is proved not to exist.
func (c cluster) list(ctx context.Context, apiVersion, kind, namespace string) ([]Entry, error) {
	all := &metav1.PartialObjectMetadataList{}
	err := c.served(ctx, Ref{APIVersion: apiVersion, Kind: kind}, func(ref Ref) error {
		apiVersion = ref.APIVersion
		all.SetGroupVersionKind(Ref{APIVersion: apiVersion, Kind: kind + "List"}.GVK())
		return c.client.List(ctx, all, client.InNamespace(namespace))
	})
	if absence.Of(absence.Object{}, err).IsProved() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := make([]Entry, 0, len(all.Items))
	for i := range all.Items {
		one := &all.Items[i]
		out = append(out, Entry{
			APIVersion: apiVersion, Kind: kind, Namespace: one.Namespace, Name: one.Name,
			UID: one.UID, Deleting: one.DeletionTimestamp != nil,
		})
	}
	return out, nil
}

// served calls f with a reference. If the cluster serves the kind only in another version, it calls f again with that
// version.
func (c cluster) served(ctx context.Context, ref Ref, f func(Ref) error) error {
	explain := func() error { return c.prover.Explain(ctx, ref.GVK().GroupKind(), f(ref)) }
	err := explain()
	if version := absence.ServedVersion(err); version != "" {
		ref.APIVersion = ref.in(version)
		err = explain()
	}
	return err
}

// in returns the API version of the reference for another version of the kind.
func (r Ref) in(version string) string {
	return schema.GroupVersion{Group: r.GVK().Group, Version: version}.String()
}
