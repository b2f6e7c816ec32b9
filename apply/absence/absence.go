// SPDX-License-Identifier: Apache-2.0

// Package absence decides what it means that a cluster does not return an object. A response with the status 404, or a
// kind that the discovery does not list, is no proof that an object does not exist: the API server may have stopped
// serving the kind, or may not have discovered it yet. All code that concludes that an object is gone calls
// ClassifyError.
package absence

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/deployerkit/deployerkit/internal/notfound"
)

// Meaning describes what the error of a request says about the existence of an object.
type Meaning string

const (
	// MeaningUnrelated means that the error says nothing about the existence of the object. For example, there is no
	// error, or the target did not respond.
	MeaningUnrelated Meaning = ""
	// MeaningGone means that the object is proved not to exist.
	MeaningGone Meaning = "Gone"
	// MeaningFinished means that the object is proved not to exist because it finished its work (see Object.HasFinished).
	// It is neither missing nor changed.
	MeaningFinished Meaning = "Done"
	// MeaningNotServed means that the cluster does not serve the object at the moment, so that the object may exist.
	MeaningNotServed Meaning = "NotServed"
	// MeaningNotAllowed means that the credentials do not allow finding out whether the object exists.
	MeaningNotAllowed Meaning = "NotAllowed"
)

// IsProved reports whether the object is proved not to exist.
func (m Meaning) IsProved() bool { return m == MeaningGone || m == MeaningFinished }

// Object describes the object of a request.
type Object struct {
	Kind schema.GroupKind
	Name string
	// HasFinished means that the object is expected to disappear after its work: it was seen complete, or its kind deletes
	// such objects itself.
	HasFinished bool
}

// ClassifyError decides what the error of a request for an object means for the existence of the object. The request
// may be of any type, such as a read or a deletion. If the kind of the object is not served, the object counts as gone
// only after Prover.AddKindError has proved this.
func ClassifyError(o Object, err error) Meaning {
	kind, isKind := errors.AsType[*KindError](err)
	switch {
	case err == nil, IsDenied(err):
		return MeaningUnrelated
	case isKind && kind.State == KindGone, !isKind && isObjectNotFound(o, err):
		if o.HasFinished {
			return MeaningFinished
		}
		return MeaningGone
	case isKind && kind.State == KindForbidden, apierrors.IsForbidden(err):
		return MeaningNotAllowed
	case isKind, CanMeanNotServed(err):
		return MeaningNotServed
	}
	return MeaningUnrelated
}

// CanMeanNotServed reports whether an error can mean that the cluster does not serve a kind: the RESTMapper does not
// know the kind, the discovery of its group is incomplete, the API server answers with the status 404 but names no
// object, or the request lacks the namespace that the scope of the kind requires.
func CanMeanNotServed(err error) bool {
	if isNamespaceMissing(err) {
		return true
	}
	if _, incomplete := errors.AsType[*discovery.ErrGroupDiscoveryFailed](err); incomplete || meta.IsNoMatchError(err) {
		return true
	}
	status, isNotFound := notfound.GetStatus(err)
	return isNotFound && !notfound.HasObjectName(status)
}

// isNamespaceMissing reports whether a client refused to send a request without a namespace, because it takes the kind
// for namespaced. Either the scope of the kind has changed, or there is no such object.
func isNamespaceMissing(err error) bool {
	return err != nil && strings.Contains(err.Error(), "an empty namespace may not be set")
}

// isObjectNotFound reports whether the API server answered that the object with this name does not exist.
func isObjectNotFound(o Object, err error) bool {
	status, isNotFound := notfound.GetStatus(err)
	return isNotFound && !CanMeanNotServed(err) && status.Details.Name == o.Name && status.Details.Group == o.Kind.Group &&
		isOfKind(o.Kind, status.Details.Kind)
}

// isOfKind reports whether a response about a resource can be about a kind. API servers name the resource, and some
// name the kind. The name of a resource is not known here, but a response for an object can also name its namespace.
func isOfKind(kind schema.GroupKind, resource string) bool {
	return resource != "" && (resource != "namespaces" || kind == schema.GroupKind{Kind: "Namespace"})
}
