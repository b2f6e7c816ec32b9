// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// edit replaces a part of a manifest.
type edit struct{ old, new string }

// apply creates the objects in all files, in the order of the file names.
func apply(ctx context.Context, c client.Client, files fs.FS) error {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return fmt.Errorf("list manifests: %w", err)
	}
	for _, name := range names {
		objects, err := decode(files, name)
		if err != nil {
			return err
		}
		for _, obj := range objects {
			if err := c.Create(ctx, obj); err != nil {
				return fmt.Errorf("create %s %s of %s: %w", obj.GetKind(), obj.GetName(), name, err)
			}
		}
	}
	return nil
}

// decode reads a file, applies the edits and returns the objects in it.
func decode(files fs.FS, name string, edits ...edit) ([]*unstructured.Unstructured, error) {
	body, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	for _, e := range edits {
		if bytes.Count(body, []byte(e.old)) != 1 {
			return nil, fmt.Errorf("edit manifest %s: %q does not occur exactly once", name, e.old)
		}
		body = bytes.Replace(body, []byte(e.old), []byte(e.new), 1)
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(body), len(body))
	var objects []*unstructured.Unstructured
	for {
		obj := &unstructured.Unstructured{}
		err := decoder.Decode(obj)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("decode manifest %s: %w", name, err)
		}
		if len(obj.Object) > 0 {
			objects = append(objects, obj)
		}
	}
}
