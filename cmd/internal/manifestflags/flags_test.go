// SPDX-License-Identifier: Apache-2.0

package manifestflags

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployers/manifest"
	"github.com/deployerkit/deployerkit/targets"
)

func parse(t *testing.T, args ...string) manifest.Options {
	t.Helper()
	var o manifest.Options
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	Add(fs, &o)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o
}

// ignoreNilLists makes a nil list of audiences equal to an empty list, because both mean the default.
var ignoreNilLists = cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".LandscaperAudiences" }, cmpopts.EquateEmpty())

func TestFlags(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		args   []string
		want   manifest.Options
	}{
		"None": {reason: "Without flags everything is as strict as it can be.", want: manifest.Options{Strategy: manifest.StrategyApply, SharedKinds: apply.DefaultSharedKinds()}},
		"NoSharedKinds": {
			reason: "None is not the default [F62].", args: []string{"--shared-kinds="},
			want: manifest.Options{Strategy: manifest.StrategyApply, SharedKinds: []schema.GroupKind{}},
		},
		"All": {
			reason: "Each flag sets its option.",
			args: []string{
				"--default-strategy=update", "--recreate", "--allow-insecure-tls", "--allow-http", "--allow-proxy", "--allow-private-hosts",
				"--allow-foreign-secrets", "--enable-oidc-targets", "--enable-self-targets", "--landscaper-audiences=a,b",
				"--shared-kinds=Namespace,Issuer.cert-manager.io", "--adoption=always", "--clean-up-first",
			},
			want: manifest.Options{Strategy: "update", Recreate: true, Adoption: apply.AdoptionAlways, CleanUpFirst: true, SharedKinds: []schema.GroupKind{{Kind: "Namespace"}, {Group: "cert-manager.io", Kind: "Issuer"}}, Targets: targets.Policy{
				AllowInsecureTLS: true, AllowHTTP: true, AllowProxy: true, AllowPrivateHosts: true, AllowForeignSecrets: true,
				EnableOIDC: true, EnableSelf: true, LandscaperAudiences: []string{"a", "b"},
			}},
		},
		"One": {
			reason: "No flag sets another's option.", args: []string{"--allow-http"},
			want: manifest.Options{Strategy: manifest.StrategyApply, SharedKinds: apply.DefaultSharedKinds(), Targets: targets.Policy{AllowHTTP: true}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := parse(t, tc.args...)
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(manifest.Options{}, "WrapTransport"), ignoreNilLists); diff != "" {
				t.Errorf("%s\nAdd(...): -want, +got:\n%s", tc.reason, diff)
			}
			if err := got.Validate(); err != nil {
				t.Errorf("%s\nValidate(): %v", tc.reason, err)
			}
		})
	}
}

// TestEachTargetOptionHasFlag checks that each option of the policy and the limits has a flag.
func TestEachTargetOptionHasFlag(t *testing.T) {
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	Add(fs, &manifest.Options{})
	flags := 0
	fs.VisitAll(func(*pflag.Flag) { flags++ })
	if want := reflect.TypeFor[targets.Policy]().NumField() + reflect.TypeFor[targets.Limits]().NumField() + 5; flags != want {
		t.Errorf("want %d flags, five of them not about targets, have %d", want, flags)
	}
}

// TestLimits checks that the result of targets.GetLimitFlag for a limit is a flag that sets this limit, and no other
// one.
func TestLimits(t *testing.T) {
	for field := range reflect.TypeFor[targets.Limits]().Fields() {
		t.Run(field.Name+" [F2]", func(t *testing.T) {
			for _, text := range []string{"12345", "0x", "-1"} {
				var o manifest.Options
				fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
				Add(fs, &o)
				err := fs.Parse([]string{targets.GetLimitFlag(field.Name) + "=" + text})
				if err == nil {
					err = o.Validate()
				}
				if text != "12345" {
					if err == nil {
						t.Errorf("%s is accepted", text)
					}
					continue
				}
				want := targets.Limits{}
				reflect.ValueOf(&want).Elem().FieldByIndex(field.Index).SetInt(12345)
				if diff := cmp.Diff(want, o.TargetLimits); diff != "" || err != nil {
					t.Errorf("%v, -want, +got:\n%s", err, diff)
				}
			}
		})
	}
	var o manifest.Options
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	Add(fs, &o)
	if err := fs.Parse([]string{"--target-limit-object=16Mi"}); err != nil || o.TargetLimits.Object != 16<<20 {
		t.Errorf("a size with a unit: %d, %v", o.TargetLimits.Object, err)
	}
}
