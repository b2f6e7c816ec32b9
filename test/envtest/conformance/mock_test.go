// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	mockv1alpha1 "github.com/gardener/landscaper/apis/deployer/mock/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/conformance"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployers/mock"
)

// Subjects with selectors accept Targets with the labels ourTargets and reject Targets with the labels otherTargets.
var (
	ourTargets   = map[string]string{"environment": "conformance"}
	otherTargets = map[string]string{"environment": "other"}
)

// newSelectors returns selectors that match Targets with the labels ourTargets.
func newSelectors() []lsv1alpha1.TargetSelector {
	return []lsv1alpha1.TargetSelector{{Labels: []lsv1alpha1.Requirement{
		{Key: "environment", Operator: selection.Equals, Values: []string{"conformance"}},
	}}}
}

// newMockConfig returns a configuration of the mock deployer with the given fields.
func newMockConfig(fields map[string]any) any {
	fields["apiVersion"], fields["kind"] = "mock.deployer.landscaper.gardener.cloud/v1alpha1", "ProviderConfiguration"
	return fields
}

// newMockSubject returns the conformance subject for the mock deployer, which runs in this process.
func newMockSubject() conformance.Subject {
	return conformance.Subject{
		Name: "mock", Type: mock.Type,
		Start: conformance.NewStartFunc(func() deployerlib.DeployerArgs {
			return mock.Args(&mockv1alpha1.Configuration{TargetSelector: newSelectors()})
		}),
		Target: func(*rest.Config) (lsv1alpha1.TargetSpec, error) {
			return lsv1alpha1.TargetSpec{Type: "conformance.deployerkit.dev/nowhere", Configuration: lsv1alpha1.NewAnyJSONPointer([]byte(`{}`))}, nil
		},
		TargetLabels: ourTargets, OtherTargetLabels: otherTargets,
		Valid: func(types.NamespacedName) any { return newMockConfig(map[string]any{"export": map[string]any{"a": 1}}) },
		Invalid: func(_ types.NamespacedName, note string) any {
			return newMockConfig(map[string]any{"phase": note})
		},
		Slow:   func(types.NamespacedName) any { return newMockConfig(map[string]any{"initialPhase": "Progressing"}) },
		Finish: completeMockJob, Deployed: hasExport,
		Options: conformance.Options{SideBySide: true},
		Bounds:  conformance.Bounds{Finish: time.Minute},
	}
}

// completeMockJob changes the configuration of a slow item of the mock deployer so that the job of the item succeeds.
func completeMockJob(ctx context.Context, c client.Client, key types.NamespacedName) error {
	return patchConfig(ctx, c, key, map[string]any{"phase": "Succeeded"})
}

// patchConfig changes fields in the configuration of an item.
func patchConfig(ctx context.Context, c client.Client, key types.NamespacedName, fields map[string]any) error {
	body, err := json.Marshal(map[string]any{"spec": map[string]any{"config": fields}})
	if err != nil {
		return err
	}
	di := &lsv1alpha1.DeployItem{}
	di.Namespace, di.Name = key.Namespace, key.Name
	return c.Patch(ctx, di, client.RawPatch(types.MergePatchType, body))
}

// hasExport reports whether the mock deployer has written the export of an item.
func hasExport(ctx context.Context, c client.Client, key types.NamespacedName) (bool, error) {
	list := &corev1.SecretList{}
	if err := c.List(ctx, list, client.InNamespace(key.Namespace)); err != nil && !apierrors.IsNotFound(err) {
		return false, err
	}
	for _, secret := range list.Items {
		if strings.HasPrefix(secret.Name, key.Name) {
			return true, nil
		}
	}
	return false, nil
}
