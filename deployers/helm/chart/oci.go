// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
)

const (
	// maxManifest is the maximum size of a manifest, and maxProvenance that of a provenance file.
	maxManifest   = 1 << 20
	maxProvenance = 1 << 20

	provenanceType = "application/vnd.cncf.helm.chart.provenance.v1.prov"
)

// chartTypes are the media types of the layer with the archive. The second is used by old versions of Helm.
var chartTypes = []string{"application/vnd.cncf.helm.chart.content.v1.tar+gzip", "application/tar+gzip"}

// ociReference is a reference to an artifact in a registry. It has a tag, a digest, or both.
type ociReference struct {
	registry.Reference

	tag    string
	digest digest.Digest
}

// String returns the reference in the form in which users write it.
func (r ociReference) String() string {
	text := r.Registry + "/" + r.Repository
	if r.tag != "" {
		text += ":" + r.tag
	}
	if r.digest != "" {
		text += "@" + string(r.digest)
	}
	return text
}

// parseReference parses a reference such as host/path:tag@sha256:….
func parseReference(path, text string) (ociReference, error) {
	var out ociReference
	name, digestText, hasDigest := strings.Cut(strings.TrimPrefix(text, "oci://"), "@")
	if colon := strings.LastIndexByte(name, ':'); colon > strings.LastIndexByte(name, '/') {
		name, out.tag = name[:colon], name[colon+1:]
	}
	var err error
	if out.Reference, err = registry.ParseReference(name); err != nil || strings.Contains(out.Registry, "@") {
		return out, newError(path, "must be a reference such as host/path/chart:1.0.0, without a scheme and credentials")
	}
	out.tag = strings.ReplaceAll(out.tag, "+", "_") // as Helm does, because a tag must not contain a plus sign
	if out.tag != "" && (registry.Reference{Reference: out.tag}).ValidateReferenceAsTag() != nil {
		return out, newError(path, "the tag is not valid")
	}
	if hasDigest {
		out.digest = digest.Digest(digestText)
		if out.digest.Validate() != nil || out.digest.Algorithm() != digest.SHA256 {
			return out, newError(path, "the digest must have the form sha256:…")
		}
	}
	if out.tag == "" && !hasDigest {
		return out, newError(path, "must contain a tag or a digest")
	}
	return out, nil
}

// artifact describes the layers of a chart in a registry.
type artifact struct {
	chart      ocispec.Descriptor
	provenance *ocispec.Descriptor // nil if the chart is not signed
}

// manifestKey identifies a manifest, and the credential that has read it.
type manifestKey struct {
	host, repository, tag, secret string
	digest                        digest.Digest
}

// clientKey identifies a client for a repository.
type clientKey struct{ host, repository, secret string }

// ociClient reads a repository of a registry.
type ociClient struct {
	*remote.Repository

	key     clientKey
	path    string // in the configuration
	subject string // the reference, for messages
}

// resolveRef resolves the chart in the field ref.
func (f *fetcher) resolveRef(ctx context.Context, r Request) (Identity, error) {
	ref, err := parseReference("ref", r.Chart.Ref)
	if err != nil {
		return Identity{}, err
	}
	return f.resolveOCI(ctx, r, "ref", ref)
}

// resolveOCI resolves a chart in a registry. The digest of the archive is that of a layer, which the manifest contains.
// A manifest that the same credential has read before is not read again.
func (f *fetcher) resolveOCI(ctx context.Context, r Request, path string, ref ociReference) (Identity, error) {
	c, err := f.registryClient(ctx, r, path, ref)
	if err != nil {
		return Identity{}, err
	}
	key := manifestKey{host: c.key.host, repository: c.key.repository, secret: c.key.secret, digest: ref.digest}
	if ref.digest != "" {
		key.tag = ref.tag
	} else if key.digest, err = c.head(ctx, ref.tag); err != nil {
		return Identity{}, err
	}
	known, ok := f.manifests.Get(key)
	if !ok {
		if known, err = f.readArtifact(ctx, c, key); err != nil {
			return Identity{}, err
		}
		f.manifests.Add(key, known)
	}
	return f.ociIdentity(c, known.(*artifact), ref.String()), nil
}

// readArtifact reads the manifest of a chart. If the reference contains a tag and a digest, it compares them.
func (f *fetcher) readArtifact(ctx context.Context, c *ociClient, key manifestKey) (*artifact, error) {
	if key.tag != "" {
		tagged, err := c.head(ctx, key.tag)
		if err != nil {
			return nil, err
		}
		if tagged != key.digest {
			return nil, newError(c.path, "%s: the tag has the digest %s, want %s", c.subject, tagged, key.digest)
		}
	}
	manifest, err := c.manifest(ctx, key.digest)
	if err != nil {
		return nil, err
	}
	out := &artifact{}
	for i, layer := range manifest.Layers {
		switch {
		case slices.Contains(chartTypes, layer.MediaType) && out.chart.Digest == "":
			out.chart = layer
		case slices.Contains(chartTypes, layer.MediaType):
			return nil, newError(c.path, "%s: the artifact contains several charts", c.subject)
		case layer.MediaType == provenanceType:
			out.provenance = &manifest.Layers[i]
		}
	}
	if out.chart.Digest == "" {
		return nil, newError(c.path, "%s: the artifact is not a Helm chart", c.subject)
	}
	return out, c.check(out.chart, f.options.Limits.Archive)
}

// ociIdentity returns the identity of a chart in a registry.
func (f *fetcher) ociIdentity(c *ociClient, a *artifact, reference string) Identity {
	found := &found{
		path:   c.path,
		origin: "oci " + c.key.host + "/" + c.key.repository,
		load: func(ctx context.Context) ([]byte, error) {
			return c.blob(ctx, a.chart, f.options.Limits.Archive)
		},
	}
	if a.provenance != nil {
		found.provenance = func(ctx context.Context) ([]byte, error) { return c.blob(ctx, *a.provenance, maxProvenance) }
	}
	return Identity{Digest: string(a.chart.Digest), Reference: reference, found: found}
}

// registryClient returns a client for the repository of a reference. Clients are kept, because they contain tokens.
func (f *fetcher) registryClient(ctx context.Context, r Request, path string, ref ociReference) (*ociClient, error) {
	entry, err := f.registryCredential(ctx, r, ref.Registry, ref.Repository)
	if err != nil {
		return nil, credentialError(path, err)
	}
	credential := entry.credential
	c := &ociClient{path: path, subject: ref.String(), key: clientKey{
		host: hostName(ref.Registry), repository: ref.Repository,
		secret: secretKey(credential.Username, credential.Password, credential.RefreshToken, credential.AccessToken),
	}}
	if known, ok := f.clients.Get(c.key); ok {
		c.Repository = known.(*remote.Repository)
		return c, nil
	}
	t := &route{fetcher: f, registry: true, scope: scope{scheme: "https", host: c.key.host}}
	c.Repository = &remote.Repository{
		Reference: registry.Reference{Registry: ref.Registry, Repository: ref.Repository}, PlainHTTP: f.hosts[c.key.host].PlainHTTP, MaxMetadataBytes: maxManifest,
	}
	if c.PlainHTTP {
		t.scope.scheme = "http"
	}
	if entry.path != "" {
		t.scope.path = "/v2/" + entry.path
	}
	c.Client = &auth.Client{
		Client: t.client(), Cache: auth.NewCache(), Header: http.Header{"User-Agent": {"deployerkit-helm-deployer"}},
		Credential: auth.StaticCredential(c.Reference.Host(), credential),
	}
	f.clients.Add(c.key, c.Repository)
	return c, nil
}

// head returns the digest of the manifest with a tag.
func (c *ociClient) head(ctx context.Context, tag string) (digest.Digest, error) {
	described, err := c.Manifests().Resolve(ctx, tag)
	if err != nil {
		return "", c.failed(err)
	}
	if described.Digest.Validate() != nil || described.Digest.Algorithm() != digest.SHA256 {
		return "", newError(c.path, "%s: the digest of the manifest does not have the form sha256:…", c.subject)
	}
	return described.Digest, nil
}

// manifest reads the manifest with a digest.
func (c *ociClient) manifest(ctx context.Context, want digest.Digest) (*ocispec.Manifest, error) {
	described, content, err := c.Manifests().FetchReference(ctx, string(want))
	if err != nil {
		return nil, c.failed(err)
	}
	defer func() { _ = content.Close() }() // nothing was written
	if described.Size > maxManifest {
		return nil, newError(c.path, "%s: the manifest has %d bytes, more than the limit of %d", c.subject, described.Size, maxManifest)
	}
	data, err := readAll(content, maxManifest)
	if err != nil {
		return nil, c.failed(err)
	}
	if got := digest.FromBytes(data); got != want {
		return nil, newError(c.path, "%s: the manifest has the digest %s, want %s", c.subject, got, want)
	}
	manifest := &ocispec.Manifest{}
	if json.Unmarshal(data, manifest) != nil {
		return nil, newError(c.path, "%s: the manifest is not valid", c.subject)
	}
	return manifest, nil
}

// check returns an error if a blob is too large or has no SHA-256 digest.
func (c *ociClient) check(blob ocispec.Descriptor, limit int64) error {
	switch {
	case blob.Digest.Validate() != nil || blob.Digest.Algorithm() != digest.SHA256:
		return newError(c.path, "%s: the digest of a layer does not have the form sha256:…", c.subject)
	case blob.Size < 0 || blob.Size > limit:
		return newError(c.path, "%s: a layer has %d bytes, more than the limit of %d", c.subject, blob.Size, limit)
	}
	return nil
}

// blob reads a blob.
func (c *ociClient) blob(ctx context.Context, blob ocispec.Descriptor, limit int64) ([]byte, error) {
	if err := c.check(blob, limit); err != nil {
		return nil, err
	}
	content, err := c.Blobs().Fetch(ctx, blob)
	if err != nil {
		return nil, c.failed(err)
	}
	defer func() { _ = content.Close() }() // nothing was written
	data, err := readAll(content, blob.Size)
	if err != nil {
		return nil, c.failed(err)
	}
	if got := digest.FromBytes(data); got != blob.Digest {
		return nil, newError(c.path, "%s: a layer has the digest %s, want %s", c.subject, got, blob.Digest)
	}
	return data, nil
}

// failed returns an Error for a failed request.
func (c *ociClient) failed(err error) error {
	return requestError(c.path, c.key.host, "read "+c.subject, err)
}
