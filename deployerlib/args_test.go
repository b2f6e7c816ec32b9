// SPDX-License-Identifier: Apache-2.0

package deployerlib_test

import (
	"strings"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// TestDefault checks the defaults, in particular that the identity is the same after a restart [H-37].
func TestDefault(t *testing.T) {
	args := deployerlib.DeployerArgs{Type: testType, Deployer: landscapertest.NewFake()}
	args.Default()
	if err := args.Validate(); err != nil {
		t.Fatal(err)
	}
	if args.Name == "" || args.Version == "" || args.Identity != args.Name || args.Clock == nil || args.Registerer == nil || args.TracerProvider == nil || args.ItemSelector == nil {
		t.Errorf("left out: %+v", args)
	}
	if args.PollInterval != 5*time.Second || args.GracePeriod != 30*time.Second || args.SecretMaxAge != time.Minute ||
		args.Backoff != (deployerlib.Backoff{Min: time.Second, Max: 5 * time.Minute}) || args.Options.MaxConcurrentReconciles != 10 || !*args.Options.EnableWarmup {
		t.Errorf("times and sizes: %+v", args)
	}
	kept := deployerlib.DeployerArgs{
		Name: "n", Version: "v", Identity: "i", Type: testType, Deployer: args.Deployer, PollInterval: 1, GracePeriod: 2, SecretMaxAge: 3,
		Backoff: deployerlib.Backoff{Min: time.Hour},
	}
	kept.Options.MaxConcurrentReconciles = 4
	kept.Default()
	if kept.Name != "n" || kept.Version != "v" || kept.Identity != "i" || kept.PollInterval != 1 || kept.GracePeriod != 2 || kept.SecretMaxAge != 3 || kept.Options.MaxConcurrentReconciles != 4 {
		t.Errorf("fields that were set have changed: %+v", kept)
	}
	if kept.Backoff.Max < kept.Backoff.Min {
		t.Errorf("backoff %+v", kept.Backoff)
	}
}

func TestValidateReportsEveryFault(t *testing.T) {
	args := deployerlib.DeployerArgs{
		Name: "not a name!", Revision: "second", PollInterval: -1, GracePeriod: -1, SecretMaxAge: -1,
		Backoff:         deployerlib.Backoff{Min: 5, Max: 1},
		TargetSelectors: []lsv1alpha1.TargetSelector{{Labels: []lsv1alpha1.Requirement{{Key: "a", Operator: "about"}}}},
		Deployer:        landscapertest.NewFake().RegisterHook(nil, extension.EndHook).RegisterHook((&landscapertest.Recorder{}).NewHook("x"), "Never"),
	}
	args.Options.Reconciler = reconcile.Func(nil)
	args.Default()
	err := args.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"type", "name", "revision", "pollInterval", "gracePeriod", "secretMaxAge", "backoff", "reconciler", "about", "End[0]", "Never"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in the error:\n%v", want, err)
		}
	}
	empty := deployerlib.DeployerArgs{}
	empty.Default()
	if err := empty.Validate(); err == nil || !strings.Contains(err.Error(), "deployer: required") {
		t.Errorf("Validate() = %v, want an error about the deployer", err)
	}
}

func TestHooksAreCopiedAtStart(t *testing.T) {
	t.Run("a hook that is registered after Add does not run [L58] [L64]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		w.fake.RegisterHook(w.hooks.NewHook("late"), extension.BeforeReconcileHook)
		w.runAttempt()
		w.expectCalls(contract.ActionReconcile)
		if len(w.hooks.Calls()) != 0 {
			t.Error("a hook that was registered after Add ran")
		}
	})
	t.Run("a deployer needs no hooks [L1] [L67]", func(t *testing.T) {
		var small deployerlib.Deployer = minimalDeployer{}
		args := deployerlib.DeployerArgs{Type: testType, Deployer: small}
		args.Default()
		if err := args.Validate(); err != nil {
			t.Error(err)
		}
	})
}
