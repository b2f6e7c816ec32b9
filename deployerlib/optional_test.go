// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// plainDeployer does nothing and implements no optional interface.
type plainDeployer struct{ Base }

func (plainDeployer) Reconcile(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	return nil
}

func (plainDeployer) Delete(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	return nil
}

// runtimeDeployer implements RuntimeUser and Resumer. It counts the calls of UseRuntime.
type runtimeDeployer struct {
	plainDeployer
	used int
}

func (d *runtimeDeployer) UseRuntime(Runtime) error { d.used++; return nil }

func (*runtimeDeployer) Resume(context.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	return nil
}

// These are deployers that contain another deployer, in different ways.
type (
	embedding struct{ Deployer }
	unwrapped struct {
		plainDeployer
		inner Deployer
	}
	keeping struct {
		plainDeployer
		inner Deployer
	}
	itself struct{ plainDeployer }
)

func (u unwrapped) Unwrap() Deployer { return u.inner }
func (i *itself) Unwrap() Deployer   { return i }

func TestOptionalInterfaces(t *testing.T) {
	for name, test := range map[string]struct {
		wrap  func(Deployer) Deployer
		found bool
		fault string
	}{
		"the deployer has the optional methods":                                   {func(d Deployer) Deployer { return d }, true, ""},
		"an embedded deployer has the optional methods [F34]":                     {func(d Deployer) Deployer { return embedding{d} }, true, ""},
		"a deployer that is embedded by a pointer has the optional methods [F34]": {func(d Deployer) Deployer { return &embedding{d} }, true, ""},
		"a deployer that is embedded twice has the optional methods [F34]":        {func(d Deployer) Deployer { return &embedding{embedding{d}} }, true, ""},
		"the deployer that Unwrap returns has the optional methods [F34]":         {func(d Deployer) Deployer { return unwrapped{inner: d} }, true, ""},
		"a deployer in a field with optional methods is an error [F34]":           {func(d Deployer) Deployer { return &keeping{inner: d} }, false, "in its field inner"},
		"a deployer in a field of an embedded deployer is an error [F34]":         {func(d Deployer) Deployer { return embedding{&keeping{inner: d}} }, false, "in its field inner"},
		"a deployer without optional methods":                                     {func(Deployer) Deployer { return plainDeployer{} }, false, ""},
		"an embedded nil has no optional methods [F34]":                           {func(Deployer) Deployer { return embedding{} }, false, ""},
		"the search ends for a deployer that wraps itself [F34]":                  {func(Deployer) Deployer { return &itself{} }, false, ""},
		"a nil field has no optional methods [F34]":                               {func(Deployer) Deployer { return &keeping{} }, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inner := &runtimeDeployer{}
			d := test.wrap(inner)
			user, ok := findOptional[RuntimeUser](d)
			if ok != test.found {
				t.Fatalf("found: %t", ok)
			}
			if _, resumes := findOptional[Resumer](d); resumes != test.found {
				t.Errorf("Resumer found: %t", resumes)
			}
			if ok {
				if err := user.UseRuntime(Runtime{}); err != nil || inner.used != 1 {
					t.Error(err, inner.used)
				}
			}
			err := checkWrapped(d)
			if (err != nil) != (test.fault != "") || err != nil && !strings.Contains(err.Error(), test.fault) {
				t.Errorf("fault %v, want %q", err, test.fault)
			}
		})
	}
}
