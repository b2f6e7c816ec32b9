// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	sigsjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/deployers/manifest"
)

// item finds the deploy item: as it is in the cluster, or as the file says it
// shall be. Who it is and what it has deployed only the cluster knows.
func (f *flags) item(ctx context.Context, ls *landscaper, stdin io.Reader) (*lsv1alpha1.DeployItem, error) {
	wanted := &lsv1alpha1.DeployItem{ObjectMeta: metav1.ObjectMeta{Name: f.name}}
	if f.file != "" {
		var err error
		if wanted, err = readItem(f.file, stdin); err != nil {
			return nil, err
		}
	}
	if f.namespace != "" && wanted.Namespace != "" && f.namespace != wanted.Namespace {
		return nil, fmt.Errorf("the deploy item is in namespace %s, not in %s as -n says", wanted.Namespace, f.namespace)
	}
	wanted.Namespace = cmp.Or(wanted.Namespace, f.namespace, metav1.NamespaceDefault)
	stored := &lsv1alpha1.DeployItem{}
	err := ls.Get(ctx, client.ObjectKeyFromObject(wanted), stored)
	missing := apierrors.IsNotFound(err) || meta.IsNoMatchError(err)
	switch {
	case err != nil && (!missing || f.file == ""):
		return nil, fmt.Errorf("get DeployItem %s/%s: %w", wanted.Namespace, wanted.Name, err)
	case stored.DeletionTimestamp != nil:
		return nil, fmt.Errorf("DeployItem %s/%s is being deleted: it is not reconciled any more", wanted.Namespace, wanted.Name)
	case f.file == "":
		wanted = stored
	default:
		wanted.UID, wanted.Status = stored.UID, stored.Status
	}
	if wanted.Spec.Type != manifest.Type {
		return nil, fmt.Errorf("spec.type: is %q, only deploy items of type %q can be planned", wanted.Spec.Type, manifest.Type)
	}
	return wanted, nil
}

// readItem reads a file with exactly one deploy item. Its errors show none of
// its values: they may be secret.
func readItem(path string, stdin io.Reader) (*lsv1alpha1.DeployItem, error) {
	var body []byte
	var err error
	if path == "-" {
		body, err = io.ReadAll(stdin)
	} else {
		body, err = os.ReadFile(path) //nolint:gosec // the user says which file
	}
	if err != nil {
		return nil, fmt.Errorf("read deploy item: %w", err)
	}
	di, err := decodeItem(body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return di, nil
}

// decodeItem is strict: a field that does not exist, or is there twice, is an error.
func decodeItem(body []byte) (*lsv1alpha1.DeployItem, error) {
	body, err := onlyDocument(body)
	if err != nil {
		return nil, err
	}
	var kind metav1.TypeMeta
	if err := json.Unmarshal(body, &kind); err != nil {
		return nil, err
	}
	if want := lsv1alpha1.SchemeGroupVersion.WithKind("DeployItem"); kind.GroupVersionKind() != want {
		return nil, fmt.Errorf("is %s %q, want %s %q", kind.APIVersion, kind.Kind, want.GroupVersion(), want.Kind)
	}
	di := &lsv1alpha1.DeployItem{}
	faults, err := sigsjson.UnmarshalStrict(body, di)
	if err := errors.Join(append(faults, err)...); err != nil {
		return nil, err
	}
	if di.Name == "" {
		return nil, errors.New("metadata.name: required")
	}
	return di, nil
}

// onlyDocument returns the one document of a file that is not empty, as JSON.
func onlyDocument(body []byte) ([]byte, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(body)))
	var only []byte
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		content, err := yaml.YAMLToJSONStrict(document)
		switch {
		case err != nil:
			return nil, err
		case string(content) == "null": // comments
		case only != nil:
			return nil, errors.New("holds several documents, want one deploy item")
		default:
			only = content
		}
	}
	if only == nil {
		return nil, errors.New("is empty, want a deploy item")
	}
	return only, nil
}
