// SPDX-License-Identifier: Apache-2.0

package landscapertest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// A test deploys an item and deletes it, as Landscaper does.
func ExampleLandscaper() {
	test := func(t *testing.T, cfg *rest.Config, c client.Client, deployer deployerlib.Deployer) {
		landscapertest.StartManager(t, cfg, deployerlib.DeployerArgs{Type: "example.org/disk", Deployer: deployer})
		ls := landscapertest.NewLandscaper(c, landscapertest.LandscaperOptions{})
		di := ls.Item("default", "disk", "example.org/disk", map[string]any{"apiVersion": "disk.example.org/v1", "kind": "DiskConfig", "size": 10})
		if err := ls.Deploy(t.Context(), di); err != nil {
			t.Fatal(err)
		}
		done, err := ls.WaitUntilFinished(t.Context(), client.ObjectKeyFromObject(di))
		if err != nil || done.Status.Phase != lsv1alpha1.DeployItemPhases.Succeeded {
			t.Fatalf("%v %+v", err, done.Status)
		}
		if err := ls.Delete(t.Context(), client.ObjectKeyFromObject(di)); err != nil {
			t.Fatal(err)
		}
	}
	_ = test
}

// Install processes an Installation with an inline blueprint, as Landscaper does. The Installation must exist.
func ExampleLandscaper_Install() {
	install := func(ctx context.Context, c client.Client) error {
		ls := landscapertest.NewLandscaper(c, landscapertest.LandscaperOptions{Revision: contract.RevisionJobID})
		return ls.Install(ctx, types.NamespacedName{Namespace: "getting-started", Name: "password"})
	}
	_ = install
}

// A Fake returns the answers that a test defines. It is useful in tests of hooks and of code that calls deployers.
func ExampleFake() {
	fake := landscapertest.NewFake().
		QueueAnswers(contract.ActionReconcile, landscapertest.ReturnWaitFor("disk d1", time.Minute), landscapertest.ReturnNil())
	for range 2 {
		fmt.Println(fake.Reconcile(context.Background(), nil, &lsv1alpha1.DeployItem{}, nil))
	}
	// Output:
	// waiting for disk d1
	// <nil>
}
