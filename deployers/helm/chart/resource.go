// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"

	helmv1alpha1 "github.com/gardener/landscaper/apis/deployer/helm/v1alpha1"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"sigs.k8s.io/yaml"
)

const resourcePath = "resourceRef"

// errUnresolved means that the chart is not in a place that this package supports.
var errUnresolved = errors.New("not supported")

// resourceSource fetches charts that are resources of components. It leaves to Options.Resolver what it does not support.
type resourceSource struct{ source }

// resourceIdentity is the content of the field resourceRef.
type resourceIdentity struct {
	Component struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	} `json:"component"`
	Resource map[string]string `json:"resource"`
}

// Resolve returns the identity of the chart.
func (s *resourceSource) Resolve(ctx context.Context, r Request) (Identity, error) {
	id, err := s.source.Resolve(ctx, r)
	if s.options.Resolver == nil || !errors.Is(err, errUnresolved) {
		return id, err
	}
	id, err = s.options.Resolver.Resolve(ctx, r)
	if err == nil {
		id.found = nil
	}
	return id, err
}

// Fetch returns the archive.
func (s *resourceSource) Fetch(ctx context.Context, r Request, id Identity) (*Archive, error) {
	if id.found == nil && s.options.Resolver != nil {
		archive, err := s.options.Resolver.Fetch(ctx, r, id)
		if err == nil && DigestOf(archive.Data) != id.Digest {
			return nil, newError(resourcePath, "%s: the archive has the digest %s, want %s", id.Reference, DigestOf(archive.Data), id.Digest)
		}
		return archive, err
	}
	return s.source.Fetch(ctx, r, id)
}

// resolveResource resolves the chart in the field resourceRef.
func (f *fetcher) resolveResource(ctx context.Context, r Request) (Identity, error) {
	identity, err := decodeIdentity(r.Chart.ResourceRef)
	if err != nil {
		return Identity{}, err
	}
	ref, err := descriptorReference(r, identity)
	if err != nil {
		return Identity{}, err
	}
	c, err := f.registryClient(ctx, r, resourcePath, ref)
	if err != nil {
		return Identity{}, err
	}
	manifest, d, err := f.readDescriptor(ctx, c, ref)
	if err != nil {
		return Identity{}, err
	}
	found, err := d.find(identity.Resource)
	if err != nil {
		return Identity{}, newError(resourcePath, "%s: %w", ref, err)
	}
	switch found.Access.kind() {
	case "localBlob", "localOciBlob":
		return f.resolveLocal(ctx, c, manifest, found.Access)
	case "ociArtifact", "ociImage", "ociRegistry":
		artifact, err := parseReference(resourcePath, found.Access.ImageReference)
		if err != nil {
			return Identity{}, err
		}
		return f.resolveOCI(ctx, r, resourcePath, artifact)
	case "helm", "helmChart":
		return f.resolveHelmAccess(ctx, r, found.Access)
	}
	return Identity{}, unresolved("the resource has an access of the type " + found.Access.Type)
}

// unresolved returns an error for a chart that only Options.Resolver can fetch.
func unresolved(reason string) error {
	return newError(resourcePath, "%s, which this deployer does not support: let the blueprint write chart.ref or chart.helmChartRepo instead (%w)", oneLine(reason), errUnresolved)
}

// decodeIdentity decodes the field resourceRef, which is YAML in base64.
func decodeIdentity(text string) (*resourceIdentity, error) {
	data, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	identity := &resourceIdentity{}
	if err != nil || yaml.Unmarshal(data, identity) != nil {
		return nil, newError(resourcePath, "must be the key of a resource, as the template function getResourceKey returns it")
	}
	if identity.Component.Name == "" || identity.Component.Version == "" || identity.Resource["name"] == "" {
		return nil, newError(resourcePath, "must contain the name and the version of a component, and the name of a resource")
	}
	return identity, nil
}

// descriptorReference returns the reference of the component descriptor in the repository of the Context.
func descriptorReference(r Request, identity *resourceIdentity) (ociReference, error) {
	if r.Context == nil || r.Context.RepositoryContext == nil || len(r.Context.RepositoryContext.Raw) == 0 {
		return ociReference{}, unresolved("the Context has no repositoryContext")
	}
	var repository struct {
		Type                 string `json:"type"`
		BaseURL              string `json:"baseUrl"`
		SubPath              string `json:"subPath"`
		ComponentNameMapping string `json:"componentNameMapping"`
	}
	if json.Unmarshal(r.Context.RepositoryContext.Raw, &repository) != nil {
		return ociReference{}, newError(resourcePath, "the repositoryContext of the Context is not valid")
	}
	switch kind, _, _ := strings.Cut(repository.Type, "/"); kind {
	case "ociRegistry", "OCIRegistry", "OCIRepository", "ociRepository":
	default:
		return ociReference{}, unresolved("the repositoryContext of the Context has the type " + repository.Type)
	}
	if mapping := repository.ComponentNameMapping; mapping != "" && mapping != "urlPath" {
		return ociReference{}, unresolved("the repositoryContext of the Context has the componentNameMapping " + mapping)
	}
	_, base := cutScheme(repository.BaseURL)
	base = strings.TrimSuffix(base, "/")
	if sub := strings.Trim(repository.SubPath, "/"); sub != "" {
		base += "/" + sub
	}
	return parseReference(resourcePath, base+"/component-descriptors/"+strings.ToLower(identity.Component.Name)+":"+identity.Component.Version)
}

// componentVersion is a component descriptor together with the manifest of which it is a layer.
type componentVersion struct {
	manifest   *ocispec.Manifest
	descriptor *descriptor
}

// readDescriptor reads a component descriptor. It reads one that the same credential has read before only if the tag has
// moved.
func (f *fetcher) readDescriptor(ctx context.Context, c *ociClient, ref ociReference) (*ocispec.Manifest, *descriptor, error) {
	key := manifestKey{host: c.key.host, repository: c.key.repository, secret: c.key.secret, tag: "component descriptor"}
	var err error
	if key.digest, err = c.head(ctx, ref.tag); err != nil {
		return nil, nil, err
	}
	if known, ok := f.manifests.Get(key); ok {
		version := known.(*componentVersion)
		return version.manifest, version.descriptor, nil
	}
	manifest, err := c.manifest(ctx, key.digest)
	if err != nil {
		return nil, nil, err
	}
	for _, layer := range manifest.Layers {
		if !strings.Contains(layer.MediaType, ".component-descriptor.v2+") {
			continue
		}
		blob, err := c.blob(ctx, layer, maxDescriptor)
		if err != nil {
			return nil, nil, err
		}
		d, err := decodeDescriptor(blob, layer.MediaType)
		if err != nil {
			return nil, nil, newError(resourcePath, "%s: %w", ref, err)
		}
		f.manifests.Add(key, &componentVersion{manifest, d})
		return manifest, d, nil
	}
	return nil, nil, newError(resourcePath, "%s: the artifact contains no component descriptor", ref)
}

// resolveLocal resolves a chart that is a layer of the component's own artifact.
func (f *fetcher) resolveLocal(ctx context.Context, c *ociClient, manifest *ocispec.Manifest, a access) (Identity, error) {
	reference := a.LocalReference
	if reference == "" {
		reference = a.Digest
	}
	for _, layer := range manifest.Layers {
		if string(layer.Digest) != reference {
			continue
		}
		if err := c.check(layer, f.options.Limits.Archive); err != nil {
			return Identity{}, err
		}
		id := f.ociIdentity(c, &artifact{chart: layer}, c.subject+" layer "+reference)
		if strings.Contains(a.MediaType, ".manifest.") || strings.Contains(a.MediaType, ".index.") {
			return f.resolveArtifactSet(ctx, id)
		}
		return id, nil
	}
	return Identity{}, newError(resourcePath, "%s: the artifact has no layer for the resource", c.subject)
}

// resolveArtifactSet resolves a chart that is in a tar file together with the manifests of its artifact. It downloads
// the tar file, unless the archive is known.
func (f *fetcher) resolveArtifactSet(ctx context.Context, outer Identity) (Identity, error) {
	key := versionKey{url: outer.found.origin, want: outer.Digest}
	load := func(ctx context.Context) ([]byte, error) {
		data, err := outer.found.load(ctx)
		if err != nil {
			return nil, err
		}
		archive, err := unpackArtifact(data, f.options.Limits.Archive)
		if err != nil {
			return nil, newError(resourcePath, "%s: %w", outer.Reference, err)
		}
		return archive, nil
	}
	id := Identity{Reference: outer.Reference, found: &found{path: resourcePath, origin: outer.found.origin, load: load}}
	if known := f.version(key); known != nil {
		id.Digest = known.digest
		return id, nil
	}
	data, err := load(ctx)
	if err != nil {
		return Identity{}, err
	}
	id.Digest = DigestOf(data)
	f.cache.add(id.found.origin+" "+id.Digest, data)
	f.versions.Add(key, &version{digest: id.Digest})
	return id, nil
}

// resolveHelmAccess resolves a chart in a chart repository or registry.
func (f *fetcher) resolveHelmAccess(ctx context.Context, r Request, a access) (Identity, error) {
	name, version, _ := strings.Cut(a.HelmChart, ":")
	if version == "" {
		version = a.Version
	}
	if strings.HasPrefix(a.HelmRepository, "oci://") {
		ref, err := parseReference(resourcePath, strings.TrimSuffix(a.HelmRepository, "/")+"/"+name+":"+version)
		if err != nil {
			return Identity{}, err
		}
		return f.resolveOCI(ctx, r, resourcePath, ref)
	}
	r.Chart = helmv1alpha1.Chart{HelmChartRepo: &helmv1alpha1.HelmChartRepo{HelmChartRepoUrl: a.HelmRepository, HelmChartName: name, HelmChartVersion: version}}
	id, err := f.resolveRepository(ctx, r)
	if fault, ok := errors.AsType[*Error](err); ok {
		fault.Path = resourcePath
	}
	return id, err
}
