// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"errors"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	helmv1alpha1 "github.com/gardener/landscaper/apis/deployer/helm/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Request names a chart and contains everything that a Source needs to fetch it.
type Request struct {
	// Chart is the field chart of the item's configuration. Exactly one of its sources is set.
	Chart helmv1alpha1.Chart
	// Context is the Landscaper Context of the item. It is nil if the item has none.
	Context *lsv1alpha1.Context
	// Namespace is the namespace of the item and of the Secrets that the Context names.
	Namespace string
	// Secrets reads the Secrets that the Context and Keyring name. It may be nil if they name none.
	Secrets client.Reader
	// Keyring names the Secret with the OpenPGP keys that may sign the chart. If it is not nil, a chart without a valid
	// signature is rejected. The default of its field key is DefaultKeyringKey.
	Keyring *lsv1alpha1.LocalSecretReference
}

// Identity identifies the archive of a chart.
type Identity struct {
	// Digest is the SHA-256 digest of the archive, such as "sha256:0123…".
	Digest string
	// Reference describes the archive to users. It contains no credentials.
	Reference string

	// found is what Resolve found. It is nil if the Identity does not come from a Source that downloads charts.
	found *found
}

// Archive is the archive of a chart: a compressed tar file.
type Archive struct {
	Identity

	Data []byte
	// Provenance is the signed provenance file of the chart. It is nil if Request.Keyring is nil.
	Provenance []byte
}

// Source fetches charts. A Source is safe for concurrent use. Its errors are of type *Error if the configuration of the
// item determines them, and do not contain credentials.
type Source interface {
	// Resolve returns the identity of a chart. It sends at most one small request, and none if the configuration
	// itself determines the digest.
	Resolve(ctx context.Context, r Request) (Identity, error)
	// Fetch returns the archive with the identity that Resolve returned for the same request. It returns an error if
	// the archive has another digest.
	Fetch(ctx context.Context, r Request, id Identity) (*Archive, error)
}

// Error is an error of a Source or of Unpack.
type Error struct {
	// Path is the field of the configuration to which the error refers, relative to the field chart, such as "ref". It
	// is empty if the error refers to the chart as a whole.
	Path string
	// Final means that the same request fails again until its author changes something.
	Final bool
	// Err describes the error in one line.
	Err error
}

// Error returns the text of Err. It does not contain the path.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// newError returns a final Error.
func newError(path, format string, args ...any) *Error {
	return &Error{Path: path, Final: true, Err: fmt.Errorf(format, args...)}
}

// Sources is a Source that passes each request to the Source for its kind of chart. A kind whose Source is nil is not
// supported.
type Sources struct {
	// Inline fetches charts in the field archive.raw.
	Inline Source
	// Remote fetches charts from the URL in the field archive.remote.
	Remote Source
	// OCI fetches charts from OCI registries (field ref).
	OCI Source
	// Repository fetches charts from Helm chart repositories (field helmChartRepo).
	Repository Source
	// Resource fetches charts that are resources of components (field resourceRef).
	Resource Source
}

var errUnsupported = errors.New("this deployer does not support charts from this source")

// errChanged is the error of Fetch if Resolve would no longer return the same digest.
var errChanged = errors.New("the chart was changed while it was fetched")

// find returns the Source for a chart, and the field of the configuration that names the chart.
func (s Sources) find(c helmv1alpha1.Chart) (source Source, path string) {
	switch {
	case c.Archive != nil && c.Archive.Remote != nil:
		return s.Remote, "archive.remote"
	case c.Archive != nil:
		return s.Inline, "archive.raw"
	case c.Ref != "":
		return s.OCI, "ref"
	case c.HelmChartRepo != nil:
		return s.Repository, "helmChartRepo"
	case c.ResourceRef != "":
		return s.Resource, "resourceRef"
	}
	return nil, ""
}

// Resolve calls Resolve of the Source for the chart.
func (s Sources) Resolve(ctx context.Context, r Request) (Identity, error) {
	source, path := s.find(r.Chart)
	if source == nil {
		return Identity{}, &Error{Path: path, Final: true, Err: errUnsupported}
	}
	return source.Resolve(ctx, r)
}

// Fetch calls Fetch of the Source for the chart. If the request names a keyring, it verifies the signature of the chart.
func (s Sources) Fetch(ctx context.Context, r Request, id Identity) (*Archive, error) {
	source, path := s.find(r.Chart)
	if source == nil {
		return nil, &Error{Path: path, Final: true, Err: errUnsupported}
	}
	archive, err := source.Fetch(ctx, r, id)
	if err != nil || r.Keyring == nil {
		return archive, err
	}
	if err := verify(ctx, r, path, archive); err != nil {
		return nil, err
	}
	return archive, nil
}
