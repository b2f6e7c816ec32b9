// SPDX-License-Identifier: Apache-2.0

package objectfile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	sigsjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Kind describes the object that a file must contain.
type Kind struct {
	// GVK is the apiVersion and kind of the object.
	GVK schema.GroupVersionKind
	// Noun is the name of the kind in messages, for example "deploy item".
	Noun string
}

// These variables are the kinds of objects that commands read.
var (
	DeployItem = Kind{GVK: lsv1alpha1.SchemeGroupVersion.WithKind("DeployItem"), Noun: "deploy item"}
	Target     = Kind{GVK: lsv1alpha1.SchemeGroupVersion.WithKind("Target"), Noun: "Target"}
)

// Read decodes a YAML or JSON file, which must contain exactly one object of the given kind. The path "-" means
// standard input.
func Read(path string, stdin io.Reader, kind Kind, into any) error {
	var body []byte
	var err error
	if path == "-" {
		body, err = io.ReadAll(stdin)
	} else {
		body, err = os.ReadFile(path) //nolint:gosec // the user chooses the file
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", kind.Noun, err)
	}
	if err := Decode(body, kind, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// Decode decodes the content of a YAML or JSON file, which must contain exactly one object of the given kind.
func Decode(body []byte, kind Kind, into any) error {
	body, err := readOnlyDocument(body, kind.Noun)
	if err != nil {
		return err
	}
	var is metav1.TypeMeta
	if err := json.Unmarshal(body, &is); err != nil {
		return err
	}
	if is.GroupVersionKind() != kind.GVK {
		return fmt.Errorf("is %s %q, want %s %q", is.APIVersion, is.Kind, kind.GVK.GroupVersion(), kind.GVK.Kind)
	}
	faults, err := sigsjson.UnmarshalStrict(body, into)
	return errors.Join(append(faults, err)...)
}

// readOnlyDocument returns the only document in a file as JSON. It returns an error if there is no document, or more
// than one.
func readOnlyDocument(body []byte, noun string) ([]byte, error) {
	all, err := ReadDocuments(body)
	switch {
	case err != nil:
		return nil, err
	case len(all) == 0:
		return nil, fmt.Errorf("is empty, want a %s", noun)
	case len(all) > 1:
		return nil, fmt.Errorf("contains several documents, want one %s", noun)
	}
	return all[0], nil
}

// ReadDocuments returns the documents of a YAML or JSON file as JSON. It omits documents that contain only
// comments.
func ReadDocuments(body []byte) (documents [][]byte, err error) {
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(body))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, err
		}
		content, err := yaml.YAMLToJSONStrict(document)
		if err != nil {
			return nil, err
		}
		if string(content) != "null" { // the JSON of a document with only comments is null
			documents = append(documents, content)
		}
	}
}
