// SPDX-License-Identifier: Apache-2.0

package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/deployerkit/deployerkit/cmd/internal/objectfile"
)

// kubeconfigPlaceholder is a placeholder in a Target. The command replaces it with the content of a kubeconfig.
const kubeconfigPlaceholder = "{kubeconfig}"

// files contains the objects in the files on the command line.
type files struct {
	item    *lsv1alpha1.DeployItem       // nil if there is none
	target  *lsv1alpha1.Target           // nil if there is none
	objects []*unstructured.Unstructured // the objects in the file of the Installation
}

// readFiles reads the files on the command line. For the item and the Target, the path "-" means standard input.
func readFiles(o *options, stdin io.Reader) (*files, error) {
	f := &files{}
	if o.target != "" {
		f.target = &lsv1alpha1.Target{}
		if err := objectfile.Read(o.target, stdin, objectfile.Target, f.target); err != nil {
			return nil, fmt.Errorf("--target: %w", err)
		}
	}
	if o.item != "" {
		f.item = &lsv1alpha1.DeployItem{}
		if err := objectfile.Read(o.item, stdin, objectfile.DeployItem, f.item); err != nil {
			return nil, fmt.Errorf("--item: %w", err)
		}
		return f, f.complete()
	}
	raw, err := os.ReadFile(o.installation)
	if err == nil {
		f.objects, err = decodeObjects(raw)
	}
	if err != nil {
		return nil, fmt.Errorf("--installation: %w", err)
	}
	return f, f.complete()
}

// decodeObjects returns the objects in a file.
func decodeObjects(raw []byte) ([]*unstructured.Unstructured, error) {
	documents, err := objectfile.ReadDocuments(raw)
	if err != nil {
		return nil, err
	}
	objects := make([]*unstructured.Unstructured, len(documents))
	for i, document := range documents {
		objects[i] = &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(document, &objects[i].Object); err != nil {
			return nil, err
		}
		if objects[i].GetKind() == "" || objects[i].GetName() == "" {
			return nil, errors.New("an object has no kind or no name")
		}
	}
	return objects, nil
}

// complete sets the namespace of objects that have none to "default".
func (f *files) complete() error {
	if f.item != nil && f.item.Name == "" {
		return errors.New("--item: metadata.name: required")
	}
	if f.item != nil && f.item.Namespace == "" {
		f.item.Namespace = "default"
	}
	if f.target != nil && f.target.Namespace == "" {
		f.target.Namespace = "default"
	}
	for _, object := range f.objects {
		if object.GetNamespace() == "" {
			object.SetNamespace("default")
		}
	}
	return nil
}

// getCommands returns commands that show the objects, where program is the command that runs deployerkit. The Targets
// may be on this machine, so `tree` needs the flag that allows such Targets.
func (f *files) getCommands(program string) []string {
	const tree = " tree %s --allow-private-hosts"
	if f.item != nil {
		key := f.item.Namespace + "/" + f.item.Name
		return []string{program + " explain " + key, program + fmt.Sprintf(tree, key)}
	}
	var commands []string
	for _, namespace := range slices.Sorted(maps.Keys(f.listNamespaces())) {
		commands = append(commands, program+fmt.Sprintf(tree, "--namespace="+namespace))
	}
	return commands
}

// getProgram returns the command that runs deployerkit in another terminal. If deployerkit is not installed, it is a
// tool of the module in the current directory.
func getProgram() string {
	if _, err := exec.LookPath("deployerkit"); err != nil {
		return "go tool deployerkit"
	}
	return "deployerkit"
}

// listNamespaces returns the set of the namespaces of all objects.
func (f *files) listNamespaces() map[string]bool {
	all := map[string]bool{}
	if f.item != nil {
		all[f.item.Namespace] = true
	}
	if f.target != nil {
		all[f.target.Namespace] = true
	}
	for _, object := range f.objects {
		all[object.GetNamespace()] = true
	}
	return all
}

// fillTarget replaces the placeholder in the Target with the content of a kubeconfig.
func (f *files) fillTarget(kubeconfig []byte) error {
	if f.target == nil || f.target.Spec.Configuration == nil {
		return nil
	}
	content := map[string]any{}
	if err := json.Unmarshal(f.target.Spec.Configuration.RawMessage, &content); err != nil {
		return fmt.Errorf("spec.config of the Target: %w", err)
	}
	for key, value := range content {
		if value == kubeconfigPlaceholder {
			content[key] = string(kubeconfig)
		}
	}
	var err error
	f.target.Spec.Configuration.RawMessage, err = json.Marshal(content)
	return err
}
