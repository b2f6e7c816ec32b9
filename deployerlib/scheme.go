// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// Scheme returns a new scheme with the types that a deployer handles: those of Kubernetes and those of Landscaper.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("add the types of Kubernetes: %w", err)
	}
	if err := lsv1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("add the types of Landscaper: %w", err)
	}
	return scheme, nil
}
