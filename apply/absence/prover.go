// SPDX-License-Identifier: Apache-2.0

package absence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// KindState describes what is known about a kind after a request for one of its objects failed with an error that does
// not name the object.
type KindState string

const (
	// KindServed means that the cluster serves the kind in the version KindError.Version.
	KindServed KindState = "Served"
	// KindNotServed means that the cluster does not serve the kind at the moment: its discovery is incomplete, or the
	// CustomResourceDefinition or APIService of the kind exists.
	KindNotServed KindState = "NotServed"
	// KindGone means that the cluster has no such kind, and thus no objects of the kind.
	KindGone KindState = "Gone"
	// KindForbidden means that the credentials do not allow reading the CustomResourceDefinitions or APIServices.
	KindForbidden KindState = "Forbidden"
)

// KindError is the error of a request for an object whose kind is not served as expected. Its text names the kind and
// contains no data of objects.
type KindError struct {
	Kind  schema.GroupKind
	State KindState
	// Version is the version in which the cluster serves the kind. It is empty unless State is KindServed.
	Version string
	// Unsupported means that the cluster serves the kind, but its objects cannot be read, such as those of
	// SubjectAccessReview.
	Unsupported bool
	// Reason explains the state to users. It is empty if the kind is unknown and AddKindErrorFromDiscovery did not ask for
	// the reason.
	Reason string
	// Err is the error of the request. It may be nil.
	Err error
}

func (e *KindError) Error() string {
	switch {
	case e.State == KindServed:
		return fmt.Sprintf("the cluster serves %s in the version %s, but not as requested", e.Kind, e.Version)
	case e.Reason == "":
		return fmt.Sprintf("the cluster does not know %s", e.Kind)
	}
	return fmt.Sprintf("the cluster does not serve %s: %s", e.Kind, e.Reason)
}

// Unwrap returns the error of the request.
func (e *KindError) Unwrap() error { return e.Err }

// GetServedVersion returns the version in which the cluster serves the kind of a request that failed, although not as
// requested. It returns "" if the error has another cause.
func GetServedVersion(err error) string {
	if kind, ok := errors.AsType[*KindError](err); ok {
		return kind.Version
	}
	return ""
}

// Discovery is a RESTMapper that can discover the kinds of its cluster again. A Prover trusts only a Discovery to know
// the versions that an aggregated API server serves.
//
// A RESTMapper returns an error for which meta.IsNoMatchError is true only if a complete discovery of the group does
// not contain the kind.
type Discovery interface {
	// Refresh discovers the kinds again, unless the last discovery is recent. The result identifies the last discovery.
	Refresh(ctx context.Context) (discovery uint64, err error)
	// IsServed reports whether the last discovery contains a version of a group completely.
	IsServed(version schema.GroupVersion) bool
	// CanRead reports whether the objects of a resource can be read.
	CanRead(resource schema.GroupVersionResource) bool
}

// Prover finds out why a cluster does not serve a kind. It is safe for concurrent use. It remembers its results until
// the next discovery. Use it for one run of an item.
type Prover struct {
	reader client.Reader
	mapper meta.RESTMapper

	mu        sync.Mutex // held during the requests of AddKindError and AddKindErrorFromDiscovery, so that concurrent calls share the results
	discovery uint64
	results   map[schema.GroupKind]KindError
}

// NewProver returns a Prover for a cluster. The reader must not read from a cache. If the mapper is not a Discovery, it
// is reset before it is asked (see meta.MaybeResetRESTMapper).
func NewProver(reader client.Reader, mapper meta.RESTMapper) *Prover {
	return &Prover{reader: reader, mapper: mapper, results: map[schema.GroupKind]KindError{}}
}

// AddKindError adds a *KindError to the error of a request for an object if the error leaves open whether the cluster
// serves the kind of the object (see CanMeanNotServed). It discovers the kinds again and, if no version of the kind is
// served, reads the CustomResourceDefinitions and APIServices of the group. It returns other errors unchanged. If these
// requests fail for an unrelated reason, it returns their error, which proves nothing.
func (p *Prover) AddKindError(ctx context.Context, kind schema.GroupKind, err error) error {
	return p.addReason(ctx, kind, err, true)
}

// AddKindErrorFromDiscovery is like AddKindError, but reads no CustomResourceDefinitions and APIServices. It is for
// requests that write an object, so that it does not matter whether the object exists. If no version of the kind is
// served, the state is KindNotServed.
func (p *Prover) AddKindErrorFromDiscovery(ctx context.Context, kind schema.GroupKind, err error) error {
	return p.addReason(ctx, kind, err, false)
}

func (p *Prover) addReason(ctx context.Context, kind schema.GroupKind, err error, prove bool) error {
	if _, done := errors.AsType[*KindError](err); done || !CanMeanNotServed(err) {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	out, failed := p.determineState(ctx, kind, prove)
	if failed != nil {
		return failed
	}
	if prove && isNamespaceMissing(err) && out.State == KindServed && p.isNamespaced(kind) {
		out.State, out.Version, out.Reason = KindGone, "", "the kind is namespaced, so an object without a namespace does not exist"
	}
	out.Kind, out.Err = kind, err
	return &out
}

// determineState returns the state of a kind. The caller holds mu.
func (p *Prover) determineState(ctx context.Context, kind schema.GroupKind, prove bool) (KindError, error) {
	if err := p.refresh(ctx); err != nil {
		return KindError{}, err
	}
	mapping, err := p.mapper.RESTMapping(kind)
	switch {
	case err == nil:
		return KindError{State: KindServed, Version: mapping.GroupVersionKind.Version, Unsupported: !p.canRead(mapping.Resource)}, nil
	case !meta.IsNoMatchError(err):
		return KindError{State: KindNotServed, Reason: err.Error()}, nil
	case !prove:
		return KindError{State: KindNotServed}, nil
	}
	if known, ok := p.results[kind]; ok {
		return known, nil
	}
	out, err := p.findReason(ctx, kind)
	if err == nil {
		p.results[kind] = out
	}
	return out, err
}

// Refresh discovers the kinds of the cluster again, unless the last discovery is recent. Call it if a known kind seems
// to have changed, for example its scope.
func (p *Prover) Refresh(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refresh(ctx)
}

// refresh is like Refresh. It also forgets the results of an earlier discovery. The caller holds mu.
func (p *Prover) refresh(ctx context.Context) error {
	from, ok := p.mapper.(Discovery)
	if !ok {
		meta.MaybeResetRESTMapper(p.mapper)
		return nil
	}
	discovery, err := from.Refresh(ctx)
	if err != nil {
		return err
	}
	if discovery != p.discovery {
		p.discovery = discovery
		clear(p.results)
	}
	return nil
}

func (p *Prover) isNamespaced(kind schema.GroupKind) bool {
	mapping, err := p.mapper.RESTMapping(kind)
	return err == nil && mapping.Scope.Name() == meta.RESTScopeNameNamespace
}

func (p *Prover) canRead(resource schema.GroupVersionResource) bool {
	from, ok := p.mapper.(Discovery)
	return ok && from.CanRead(resource)
}

// findReason finds out why a complete discovery does not contain a kind. The kind is gone if neither a
// CustomResourceDefinition nor an aggregated API server defines it.
func (p *Prover) findReason(ctx context.Context, kind schema.GroupKind) (KindError, error) {
	for _, find := range []func(context.Context, schema.GroupKind) (string, error){p.findDefinition, p.findService} {
		reason, err := find(ctx, kind)
		switch {
		case apierrors.IsForbidden(err):
			return KindError{State: KindForbidden, Reason: "it cannot be proved that the kind is gone: " + err.Error()}, nil
		case err != nil:
			return KindError{}, err
		case reason != "":
			return KindError{State: KindNotServed, Reason: reason}, nil
		}
	}
	return KindError{State: KindGone, Reason: "the kind does not exist"}, nil
}

// maxDefinitions is the maximum number of CustomResourceDefinitions that a proof reads. It reads only those whose
// resources the discovery does not contain.
const maxDefinitions = 20

var (
	definitionKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	serviceKind    = schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}
)

// findDefinition returns a text that names the CustomResourceDefinition of a kind, or "" if there is none.
func (p *Prover) findDefinition(ctx context.Context, kind schema.GroupKind) (string, error) {
	all, err := p.list(ctx, definitionKind)
	if err != nil {
		return "", err
	}
	read := 0
	for i := range all {
		plural, inGroup := strings.CutSuffix(all[i].Name, "."+kind.Group)
		if !inGroup || strings.Contains(plural, ".") || p.isOfAnotherKind(kind, plural) {
			continue
		}
		if read++; read > maxDefinitions {
			return fmt.Sprintf("more than %d CustomResourceDefinitions of the group %s are not served", maxDefinitions, kind.Group), nil
		}
		live, err := p.read(ctx, definitionKind, all[i].Name)
		if err != nil {
			return "", err
		}
		if name, _, _ := unstructured.NestedString(live, "spec", "names", "kind"); name == kind.Kind {
			return "its CustomResourceDefinition " + all[i].Name + " exists, but no version of it is served", nil
		}
	}
	return "", nil
}

// isOfAnotherKind reports whether the cluster serves a resource of the group as another kind.
func (p *Prover) isOfAnotherKind(kind schema.GroupKind, plural string) bool {
	served, err := p.mapper.KindsFor(schema.GroupVersionResource{Group: kind.Group, Resource: plural})
	return err == nil && slices.ContainsFunc(served, func(gvk schema.GroupVersionKind) bool { return gvk.Group == kind.Group }) &&
		!slices.ContainsFunc(served, func(gvk schema.GroupVersionKind) bool { return gvk.GroupKind() == kind })
}

// managedLabel is a label of the APIServices that the API server creates for the groups that it serves itself.
const managedLabel = "kube-aggregator.kubernetes.io/automanaged"

// findService returns a text that names an APIService that may serve a kind, or "" if there is none. The APIServices of
// the API server itself do not count, because their kinds are built in or have a CustomResourceDefinition.
func (p *Prover) findService(ctx context.Context, kind schema.GroupKind) (string, error) {
	all, err := p.list(ctx, serviceKind)
	if err != nil {
		return "", err
	}
	for i := range all {
		version, inGroup := strings.CutSuffix(all[i].Name, "."+kind.Group)
		if !inGroup || strings.Contains(version, ".") || all[i].Labels[managedLabel] != "" {
			continue
		}
		from, ok := p.mapper.(Discovery)
		if !ok || !from.IsServed(schema.GroupVersion{Group: kind.Group, Version: version}) {
			return "the APIService " + all[i].Name + " exists, but is not served", nil
		}
	}
	return "", nil
}

// list returns the metadata of all objects of a kind. It returns nothing if the cluster has no such kind.
func (p *Prover) list(ctx context.Context, gvk schema.GroupVersionKind) ([]metav1.PartialObjectMetadata, error) {
	if _, err := p.mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err != nil {
		if meta.IsNoMatchError(err) {
			return nil, nil
		}
		return nil, err
	}
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := p.reader.List(ctx, all); err != nil {
		return nil, err
	}
	return all.Items, nil
}

// read returns the content of a cluster-scoped object, or nil if the object does not exist.
func (p *Prover) read(ctx context.Context, gvk schema.GroupVersionKind, name string) (map[string]any, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(gvk)
	err := p.reader.Get(ctx, client.ObjectKey{Name: name}, live)
	if ClassifyError(Object{Kind: gvk.GroupKind(), Name: name}, err) == MeaningGone {
		return nil, nil
	}
	return live.Object, err
}
