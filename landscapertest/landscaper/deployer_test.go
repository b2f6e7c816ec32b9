// SPDX-License-Identifier: Apache-2.0

package landscaper_test

import (
	"context"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/deployers/mock"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/landscapertest/landscaper"
)

// manifest contains an Installation with one deploy item. The Installation exports the value that this item exports.
const manifest = `
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Installation
metadata:
  name: database
  namespace: default
  annotations: {landscaper.gardener.cloud/operation: reconcile}
spec:
  exports:
    data: [{name: host, dataRef: database-host}]
  blueprint:
    inline:
      filesystem:
        blueprint.yaml: |
          apiVersion: landscaper.gardener.cloud/v1alpha1
          kind: Blueprint
          jsonSchema: https://json-schema.org/draft/2019-09/schema
          exports: [{name: host, type: data, schema: {type: string}}]
          deployExecutions: [{name: items, type: GoTemplate, file: /items.yaml}]
          exportExecutions: [{name: host, type: GoTemplate, file: /exports.yaml}]
        items.yaml: |
          deployItems:
          - name: address
            type: landscaper.gardener.cloud/mock
            config:
              apiVersion: mock.deployer.landscaper.gardener.cloud/v1alpha1
              kind: ProviderConfiguration
              export: {host: db.example.com}
        exports.yaml: |
          exports: {host: "{{ .deployitems.address.host }}"}
`

func TestDeployerUnderLandscaper(t *testing.T) {
	cp, err := controlplane.Start(t.Context(), controlplane.Options{ControllerManager: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cp.Stop(); err != nil {
			t.Error(err)
		}
	})
	landscaper.StartLandscaper(t, cp, landscaper.Options{PickupTimeout: 10 * time.Second})
	landscapertest.StartManager(t, cp.Config, mock.Args(nil)) // the arguments of your deployer
	scheme, err := landscapertest.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cp.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}

	in := &lsv1alpha1.Installation{}
	if err := yaml.Unmarshal([]byte(manifest), in); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(in), in)
		return in.Status.InstallationPhase.IsFinal(), err
	})
	if in.Status.InstallationPhase != lsv1alpha1.InstallationPhases.Succeeded {
		t.Fatalf("the Installation is in phase %s: %+v", in.Status.InstallationPhase, in.Status.LastError)
	}
	host := &lsv1alpha1.DataObject{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "database-host"}, host); err != nil {
		t.Fatal(err)
	}
	if got := string(host.Data.RawMessage); got != `"db.example.com"` {
		t.Errorf("the export is %s", got)
	}

	if err := c.Delete(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(in), in)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

// waitUntil waits until ok returns true, for at most one minute.
func waitUntil(t *testing.T, ok wait.ConditionWithContextFunc) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, ok); err != nil {
		t.Fatal(err)
	}
}
