// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"errors"
	"fmt"
	"io"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/deployerkit/deployerkit/cmd/internal/objectfile"
	"github.com/deployerkit/deployerkit/conformance"
	"github.com/deployerkit/deployerkit/faultnet"
)

// readItem reads a deploy item from a file. Errors mention flag, the flag that names the file. If itemType is not
// empty, the item must have this type.
func readItem(flag, path string, itemType lsv1alpha1.DeployItemType, stdin io.Reader) (*lsv1alpha1.DeployItem, error) {
	if path == "-" && flag != "--item" {
		return nil, fmt.Errorf("%s: only --item can be the standard input", flag)
	}
	di := &lsv1alpha1.DeployItem{}
	if err := objectfile.Read(path, stdin, objectfile.DeployItem, di); err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	switch {
	case di.Spec.Type == "":
		return nil, fmt.Errorf("%s: %s: spec.type: required", flag, path)
	case itemType != "" && di.Spec.Type != itemType:
		return nil, fmt.Errorf("%s: %s: spec.type: is %q, but the type of --item is %q", flag, path, di.Spec.Type, itemType)
	case di.Spec.Configuration == nil || len(di.Spec.Configuration.Raw) == 0:
		return nil, fmt.Errorf("%s: %s: spec.config: required", flag, path)
	}
	return di, nil
}

// newConfigFunc returns a function that returns the configuration of di. The function replaces the placeholders with
// the namespace and the name of its argument.
func newConfigFunc(di *lsv1alpha1.DeployItem) func(types.NamespacedName) any {
	return func(item types.NamespacedName) any { return replacePlaceholders(di, newPlaceholders(item)) }
}

// newInvalidConfigFunc returns a function for Subject.Invalid, which returns the configuration of di. The function
// replaces the placeholders with the namespace and the name of the item, and with the note.
func newInvalidConfigFunc(di *lsv1alpha1.DeployItem) func(types.NamespacedName, string) any {
	return func(item types.NamespacedName, note string) any {
		values := newPlaceholders(item)
		values[noteHere] = note
		return replacePlaceholders(di, values)
	}
}

// replacePlaceholders returns the configuration of di with the placeholders replaced. The configuration must be valid
// JSON, which is always true if it was read from a file.
func replacePlaceholders(di *lsv1alpha1.DeployItem, values placeholders) []byte {
	raw, err := values.replaceInJSON(di.Spec.Configuration.Raw)
	if err != nil {
		return di.Spec.Configuration.Raw
	}
	return raw
}

// addTarget reads the file with the Target.
func (f *flags) addTarget(s *conformance.Subject, stdin io.Reader) error {
	target := &lsv1alpha1.Target{}
	if f.target == "-" {
		return errors.New("--target: only --item can be the standard input")
	}
	if err := objectfile.Read(f.target, stdin, objectfile.Target, target); err != nil {
		return fmt.Errorf("--target: %w", err)
	}
	if target.Spec.SecretRef != nil {
		return fmt.Errorf("--target: %s: spec.secretRef: not supported, because the namespaces of the checks do not contain the Secret; use spec.config", f.target)
	}
	s.TargetLabels, s.OtherTargetLabels = target.Labels, f.otherLabels
	s.Target = func(cfg *rest.Config) (lsv1alpha1.TargetSpec, error) {
		spec := *target.Spec.DeepCopy()
		if spec.Configuration == nil {
			return spec, nil
		}
		cfg = rest.CopyConfig(cfg)
		if err := rest.LoadTLSFiles(cfg); err != nil {
			return spec, fmt.Errorf("make kubeconfig: %w", err)
		}
		kubeconfig, err := faultnet.EncodeKubeconfig(cfg)
		if err != nil {
			return spec, fmt.Errorf("make kubeconfig: %w", err)
		}
		spec.Configuration.RawMessage, err = placeholders{kubeconfigHere: string(kubeconfig)}.replaceInJSON(spec.Configuration.RawMessage)
		return spec, err
	}
	return nil
}
