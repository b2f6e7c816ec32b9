// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"fmt"
	"io/fs"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/cmd/internal/objectfile"
)

// edit replaces a part of a file.
type edit struct{ old, new string }

// decode applies the edits to each file that matches a pattern, and returns the objects in these files.
func decode(files fs.FS, pattern string, edits ...edit) ([]*unstructured.Unstructured, error) {
	names, err := fs.Glob(files, pattern)
	if err != nil {
		return nil, fmt.Errorf("list manifests: %w", err)
	}
	var objects []*unstructured.Unstructured
	for _, name := range names {
		documents, err := readDocuments(files, name, edits)
		if err != nil {
			return nil, fmt.Errorf("manifest %s: %w", name, err)
		}
		for _, document := range documents {
			obj := &unstructured.Unstructured{}
			if err := obj.UnmarshalJSON(document); err != nil {
				return nil, fmt.Errorf("manifest %s: %w", name, err)
			}
			objects = append(objects, obj)
		}
	}
	return objects, nil
}

// readDocuments applies the edits to a file, and returns its documents as JSON.
func readDocuments(files fs.FS, name string, edits []edit) ([][]byte, error) {
	body, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, err
	}
	for _, e := range edits {
		if bytes.Count(body, []byte(e.old)) != 1 {
			return nil, fmt.Errorf("%q does not occur exactly once", e.old)
		}
		body = bytes.Replace(body, []byte(e.old), []byte(e.new), 1)
	}
	return objectfile.ReadDocuments(body)
}
