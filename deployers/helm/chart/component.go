// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"sigs.k8s.io/yaml"
)

// maxDescriptor is the maximum size of a component descriptor.
const maxDescriptor = 4 << 20

// descriptor is a component descriptor in one of its two formats: with the field component, or with the field spec.
type descriptor struct {
	Component struct {
		Resources []resource `json:"resources"`
	} `json:"component"`
	Spec struct {
		Resources []resource `json:"resources"`
	} `json:"spec"`
}

// resource is a resource of a component.
type resource struct {
	Name          string            `json:"name"`
	Version       string            `json:"version"`
	ExtraIdentity map[string]string `json:"extraIdentity"`
	Access        access            `json:"access"`
}

// access describes where the content of a resource is.
type access struct {
	Type           string `json:"type"`
	LocalReference string `json:"localReference"` // localBlob
	Digest         string `json:"digest"`         // localOciBlob
	MediaType      string `json:"mediaType"`
	ImageReference string `json:"imageReference"` // ociArtifact
	HelmRepository string `json:"helmRepository"` // helm
	HelmChart      string `json:"helmChart"`
	Version        string `json:"version"`
}

// kind returns the type without its version.
func (a access) kind() string {
	kind, _, _ := strings.Cut(a.Type, "/")
	return kind
}

// find returns the resource with an identity.
func (d *descriptor) find(identity map[string]string) (*resource, error) {
	var found *resource
	for _, list := range [][]resource{d.Component.Resources, d.Spec.Resources} {
		for i := range list {
			if !list[i].matches(identity) {
				continue
			}
			if found != nil {
				return nil, errors.New("several resources of the component have this identity")
			}
			found = &list[i]
		}
	}
	if found == nil {
		return nil, errors.New("the component has no resource with this identity")
	}
	return found, nil
}

// matches reports whether a resource has all attributes of an identity.
func (r *resource) matches(identity map[string]string) bool {
	for name, want := range identity {
		got, ok := r.ExtraIdentity[name]
		switch name {
		case "name":
			got, ok = r.Name, true
		case "version":
			got, ok = r.Version, true
		}
		if !ok || got != want {
			return false
		}
	}
	return len(identity) > 0
}

// decodeDescriptor decodes a component descriptor. The blob is a file in YAML format, or a tar file that contains it.
func decodeDescriptor(blob []byte, mediaType string) (*descriptor, error) {
	if strings.HasSuffix(mediaType, "+tar") {
		reader := tar.NewReader(bytes.NewReader(blob))
		header, err := reader.Next()
		for err == nil && path.Base(header.Name) != "component-descriptor.yaml" {
			header, err = reader.Next()
		}
		if err != nil {
			return nil, errors.New("the archive contains no component-descriptor.yaml")
		}
		if blob, err = readAll(reader, maxDescriptor); err != nil {
			return nil, errors.New("the archive with the component descriptor is not valid")
		}
	}
	d := &descriptor{}
	if yaml.Unmarshal(blob, d) != nil {
		return nil, errors.New("the component descriptor is not valid")
	}
	return d, nil
}

// unpackArtifact returns the archive of a chart from a tar file that contains an artifact of a registry: blobs, and
// manifests that refer to them. The tar file may be compressed. The limit applies to the blobs together.
func unpackArtifact(data []byte, limit int64) ([]byte, error) {
	var in io.Reader = bytes.NewReader(data)
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		unzipped, err := gzip.NewReader(in)
		if err != nil {
			return nil, errors.New("the artifact is not a valid gzip file")
		}
		in = unzipped
	}
	blobs, err := readBlobs(tar.NewReader(io.LimitReader(in, 2*limit+(1<<20))), limit)
	if err != nil {
		return nil, err
	}
	for _, blob := range blobs {
		var manifest ocispec.Manifest
		if json.Unmarshal(blob, &manifest) != nil {
			continue
		}
		for _, layer := range manifest.Layers {
			if content, ok := blobs[layer.Digest]; ok && slices.Contains(chartTypes, layer.MediaType) {
				return content, nil
			}
		}
	}
	return nil, errors.New("the artifact contains no Helm chart")
}

// readBlobs returns the files of a tar file, by their digests.
func readBlobs(in *tar.Reader, limit int64) (map[digest.Digest][]byte, error) {
	blobs := map[digest.Digest][]byte{}
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return blobs, nil
		}
		if err != nil || len(blobs) > 1000 {
			return nil, errors.New("the artifact is not a valid tar file")
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		data, err := readAll(in, limit)
		if err != nil {
			return nil, errors.New("the artifact is too large or not a valid tar file")
		}
		limit -= int64(len(data))
		blobs[digest.FromBytes(data)] = data
	}
}
