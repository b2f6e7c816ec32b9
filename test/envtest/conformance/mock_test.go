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

// selectors returns selectors that match Targets with the labels ourTargets.
func selectors() []lsv1alpha1.TargetSelector {
	return []lsv1alpha1.TargetSelector{{Labels: []lsv1alpha1.Requirement{
		{Key: "environment", Operator: selection.Equals, Values: []string{"conformance"}},
	}}}
}

// mockConfig returns a configuration of the mock deployer with the given fields.
func mockConfig(fields map[string]any) any {
	fields["apiVersion"], fields["kind"] = "mock.deployer.landscaper.gardener.cloud/v1alpha1", "ProviderConfiguration"
	return fields
}

// mockDeployer returns the conformance subject for the mock deployer, which runs in this process.
func mockDeployer() conformance.Subject {
	return conformance.Subject{
		Name: "mock", Type: mock.Type,
		Start: conformance.Library(func() deployerlib.DeployerArgs {
			return mock.Args(&mockv1alpha1.Configuration{TargetSelector: selectors()})
		}),
		Target: func(*rest.Config) (lsv1alpha1.TargetSpec, error) {
			return lsv1alpha1.TargetSpec{Type: "conformance.deployerkit.dev/nowhere", Configuration: lsv1alpha1.NewAnyJSONPointer([]byte(`{}`))}, nil
		},
		TargetLabels: ourTargets, OtherTargetLabels: otherTargets,
		Valid: func(types.NamespacedName) any { return mockConfig(map[string]any{"export": map[string]any{"a": 1}}) },
		Invalid: func(_ types.NamespacedName, note string) any {
			return mockConfig(map[string]any{"phase": note})
		},
		Slow:   func(types.NamespacedName) any { return mockConfig(map[string]any{"initialPhase": "Progressing"}) },
		Finish: finishMock, Deployed: exported,
		Options: conformance.Options{SideBySide: true},
		Bounds:  conformance.Bounds{Finish: time.Minute},
	}
}

// finishMock changes the configuration of a slow item of the mock deployer so that the job of the item succeeds.
func finishMock(ctx context.Context, c client.Client, key types.NamespacedName) error {
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

// exported reports whether the mock deployer has written the export of an item.
func exported(ctx context.Context, c client.Client, key types.NamespacedName) (bool, error) {
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
