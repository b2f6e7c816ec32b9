// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"errors"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	intoto "github.com/in-toto/attestation/go/v1"
)

const (
	revision   = "org.opencontainers.image.revision"
	baseName   = "org.opencontainers.image.base.name"
	baseDigest = "org.opencontainers.image.base.digest"
)

// origin describes where an artifact comes from, according to its labels and annotations.
type origin struct {
	commit string
	bases  []*intoto.ResourceDescriptor // the base images
}

// findOrigin returns the origin of an artifact, which is an image, an index of images, or a chart.
func findOrigin(described *remote.Descriptor) (*origin, error) {
	var images []v1.Image
	if described.MediaType.IsIndex() {
		index, err := described.ImageIndex()
		if err != nil {
			return nil, err
		}
		manifest, err := index.IndexManifest()
		if err != nil {
			return nil, err
		}
		for _, entry := range manifest.Manifests {
			image, err := index.Image(entry.Digest)
			if err != nil {
				return nil, err
			}
			images = append(images, image)
		}
	} else {
		image, err := described.Image()
		if err != nil {
			return nil, err
		}
		images = append(images, image)
	}
	out := &origin{}
	for i, image := range images {
		commit, err := out.add(image)
		if err != nil {
			return nil, err
		}
		if i > 0 && commit != out.commit {
			return nil, errors.New("the images for the platforms were built from different commits")
		}
		out.commit = commit
	}
	return out, nil
}

// add adds the base image of an image or a chart to o. It returns the commit from which the image or the chart was
// built. A chart contains the commit as an annotation, and an image contains it as a label.
func (o *origin) add(image v1.Image) (commit string, err error) {
	manifest, err := image.Manifest()
	if err != nil {
		return "", err
	}
	if algorithm, digest, found := strings.Cut(manifest.Annotations[baseDigest], ":"); found {
		base := &intoto.ResourceDescriptor{Uri: "oci://" + manifest.Annotations[baseName], Digest: map[string]string{algorithm: digest}}
		if !slices.ContainsFunc(o.bases, func(other *intoto.ResourceDescriptor) bool { return other.Digest[algorithm] == digest }) {
			o.bases = append(o.bases, base)
		}
	}
	if commit := manifest.Annotations[revision]; commit != "" || !manifest.Config.MediaType.IsConfig() {
		return commit, nil
	}
	config, err := image.ConfigFile()
	if err != nil {
		return "", err
	}
	return config.Config.Labels[revision], nil
}
