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
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply/absence"
	"github.com/deployerkit/deployerkit/apply/internal/decide"
	"github.com/deployerkit/deployerkit/apply/internal/object"
)

// cluster sends requests for objects to the API server. It executes the steps that package decide
// returns. It does not choose the steps itself.
type cluster struct {
	client client.Client
	prover *absence.Prover
}

// strict makes the API server reject a field that the schema of the kind does not contain, as it does for server-side
// apply. By default, it drops such a field silently.
const strict = client.FieldValidation(metav1.FieldValidationStrict)

// do sends the request of a step. It returns the object in the answer, or nil if the answer contains none. If the error
// leaves open whether the object exists, do finds out why (see absence.Prover).
func (c cluster) do(ctx context.Context, s decide.Step) (*unstructured.Unstructured, error) {
	live, err := c.send(ctx, s)
	kind := s.Facts.Ref().GVK().GroupKind()
	if s.Facts.Manifest != nil {
		return live, c.prover.AddKindErrorFromDiscovery(ctx, kind, err)
	}
	return live, c.prover.AddKindError(ctx, kind, err)
}

// send sends the request of a step.
func (c cluster) send(ctx context.Context, s decide.Step) (*unstructured.Unstructured, error) {
	ref := s.Facts.Ref()
	switch s.Effect {
	case decide.EffectRead:
		return c.read(ctx, ref)
	case decide.EffectReadMetadata:
		return c.readMetadata(ctx, ref)
	case decide.EffectCreate:
		body := s.Body.DeepCopy()
		return body, c.client.Create(ctx, body, client.FieldOwner(s.Manager), strict)
	case decide.EffectApply:
		return c.apply(ctx, s)
	case decide.EffectUpdate:
		return s.Body, sendStrictly(s, func(validation client.FieldValidation) error {
			return c.client.Update(ctx, s.Body, &client.UpdateOptions{FieldManager: s.Manager, DryRun: getDryRunOptions(s)}, validation)
		})
	case decide.EffectPatch, decide.EffectMerge:
		return c.merge(ctx, s)
	case decide.EffectRename:
		return nil, c.client.Patch(ctx, object.New(ref), client.RawPatch(types.JSONPatchType, s.Rename))
	case decide.EffectDelete:
		return nil, c.delete(ctx, ref, s.UID, s.Version)
	case decide.EffectAsk, decide.EffectFindOwners:
	}
	return nil, fmt.Errorf("there is no request for the effect %q", s.Effect)
}

// read returns the current object in the cluster.
func (c cluster) read(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	live := object.New(ref)
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
func (c cluster) apply(ctx context.Context, s decide.Step) (*unstructured.Unstructured, error) {
	body := s.Body.DeepCopy()
	if s.UID != "" {
		body.SetUID(s.UID)
	}
	if s.Version != "" {
		body.SetResourceVersion(s.Version)
	}
	options := &client.ApplyOptions{FieldManager: s.Manager, DryRun: getDryRunOptions(s)}
	if s.Force {
		options.Force = &s.Force
	}
	return body, c.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(body), options)
}

// merge sends a JSON merge patch.
func (c cluster) merge(ctx context.Context, s decide.Step) (*unstructured.Unstructured, error) {
	obj := object.New(s.Facts.Ref())
	data, err := json.Marshal(s.Patch)
	if err != nil {
		return nil, newInvalidError(s.Facts.Ref(), "", "the patch is not JSON: %v", err)
	}
	send := func(validation client.FieldValidation) error {
		options := &client.PatchOptions{FieldManager: s.Manager, DryRun: getDryRunOptions(s), FieldValidation: string(validation)}
		return c.client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, data), options)
	}
	if !s.Strict {
		return obj, send("")
	}
	return obj, sendStrictly(s, send)
}

// sendStrictly sends a strict request. If the API server does not know a field of the object in the cluster, but knows
// all fields of the manifest and of patchAfterDeployment, it sends the request again, and the API server drops the
// field. A newer API server of the same cluster may have stored such a field.
func sendStrictly(s decide.Step, send func(client.FieldValidation) error) error {
	err := send(strict)
	if err == nil {
		return nil
	}
	unknown := listUnknownFields(err.Error())
	if len(unknown) == 0 || s.Facts.Manifest == nil || slices.ContainsFunc(unknown, func(path string) bool { return isDesired(s.Facts.Manifest, path) }) {
		return err
	}
	return send(client.FieldValidation(metav1.FieldValidationIgnore))
}

// isDesired reports whether the manifest or patchAfterDeployment contains a field.
func isDesired(m *decide.Manifest, path string) bool {
	return hasField(m.Object.Object, path) || hasField(m.PatchAfterDeployment, path)
}

// getDryRunOptions returns the option DryRun for the request of the step.
func getDryRunOptions(s decide.Step) []string {
	if s.DryRun {
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
	return c.client.Delete(ctx, object.New(ref), only, client.PropagationPolicy(metav1.DeletePropagationBackground))
}

// list returns the objects of a kind, in one namespace or in all namespaces, as inventory entries. If the cluster
// serves the kind only in another version, list uses that version. It returns nothing if the kind is proved not to
// exist.
func (c cluster) list(ctx context.Context, apiVersion, kind, namespace string) ([]Entry, error) {
	all := &metav1.PartialObjectMetadataList{}
	err := c.tryServedVersion(ctx, Ref{APIVersion: apiVersion, Kind: kind}, func(ref Ref) error {
		apiVersion = ref.APIVersion
		all.SetGroupVersionKind(Ref{APIVersion: apiVersion, Kind: kind + "List"}.GVK())
		return c.client.List(ctx, all, client.InNamespace(namespace))
	})
	if absence.ClassifyError(absence.Object{}, err).IsProved() {
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

// tryServedVersion calls f with a reference. If the cluster serves the kind only in another version, it calls f again
// with that version.
func (c cluster) tryServedVersion(ctx context.Context, ref Ref, f func(Ref) error) error {
	explain := func() error { return c.prover.AddKindError(ctx, ref.GVK().GroupKind(), f(ref)) }
	err := explain()
	if version := absence.GetServedVersion(err); version != "" {
		ref.APIVersion = object.FormatAPIVersion(ref, version)
		err = explain()
	}
	return err
}
