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

// Kind is the kind of object that a file must contain.
type Kind struct {
	// GVK is its apiVersion and kind.
	GVK schema.GroupVersionKind
	// Noun is the name of the kind in messages, such as "deploy item".
	Noun string
}

// The kinds that commands read.
var (
	DeployItem = Kind{GVK: lsv1alpha1.SchemeGroupVersion.WithKind("DeployItem"), Noun: "deploy item"}
	Target     = Kind{GVK: lsv1alpha1.SchemeGroupVersion.WithKind("Target"), Noun: "Target"}
)

// Read reads a YAML or JSON file with exactly one object. The path "-" is stdin.
func Read(path string, stdin io.Reader, kind Kind, into any) error {
	var body []byte
	var err error
	if path == "-" {
		body, err = io.ReadAll(stdin)
	} else {
		body, err = os.ReadFile(path) //nolint:gosec // the user says which file
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", kind.Noun, err)
	}
	if err := Decode(body, kind, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// Decode is Read for the content of a file.
func Decode(body []byte, kind Kind, into any) error {
	body, err := onlyDocument(body, kind.Noun)
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

// onlyDocument returns the only document of a non-empty file as JSON.
func onlyDocument(body []byte, noun string) ([]byte, error) {
	all, err := Documents(body)
	switch {
	case err != nil:
		return nil, err
	case len(all) == 0:
		return nil, fmt.Errorf("is empty, want a %s", noun)
	case len(all) > 1:
		return nil, fmt.Errorf("holds several documents, want one %s", noun)
	}
	return all[0], nil
}

// Documents returns the documents of a YAML or JSON file as JSON. It omits those that contain only comments.
func Documents(body []byte) (documents [][]byte, err error) {
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
		if string(content) != "null" { // comments
			documents = append(documents, content)
		}
	}
}
