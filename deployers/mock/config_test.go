// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	mockv1alpha1 "github.com/gardener/landscaper/apis/deployer/mock/v1alpha1"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deployerkit/deployerkit/contract"
)

// meta contains the fields with which every configuration begins.
const meta = `"apiVersion":"mock.deployer.landscaper.gardener.cloud/v1alpha1","kind":"ProviderConfiguration"`

// newItem returns an item whose configuration consists of meta and the given fields.
func newItem(fields string) *lsv1alpha1.DeployItem {
	raw := "{" + meta + "}"
	if fields != "" {
		raw = "{" + meta + "," + fields + "}"
	}
	di := &lsv1alpha1.DeployItem{}
	di.Namespace, di.Name, di.UID = "ns", "item", "uid"
	di.Spec.Configuration = &runtime.RawExtension{Raw: []byte(raw)}
	return di
}

func TestDecodeRejectsInvalidConfigurations(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		raw    string
		want   string
	}{
		"NoConfig": {
			reason: "A missing configuration is rejected, unlike an empty one.",
			want:   "spec.config: required",
		},
		"BrokenJSON": {
			reason: "Text that is not JSON is rejected.",
			raw:    `{"phase":`, want: "spec.config: ",
		},
		"OtherKind": {
			reason: "A configuration of another deployer is refused by its kind.",
			raw:    `{"apiVersion":"manifest.deployer.landscaper.gardener.cloud/v1alpha2","kind":"ProviderConfiguration"}`,
			want:   `spec.config: is manifest.deployer.landscaper.gardener.cloud/v1alpha2 "ProviderConfiguration", want mock.`,
		},
		"UnknownField": {
			reason: "A misspelt field is named.",
			raw:    "{" + meta + `,"phaze":"Failed"}`, want: `spec.config: unknown field "phaze"`,
		},
		"WrongType": {
			reason: "A field of another type is named.",
			raw:    "{" + meta + `,"phase":7}`, want: "phase",
		},
		"UnknownPhase": {
			reason: "A phase that does not exist is refused.",
			raw:    "{" + meta + `,"phase":"Done"}`, want: `spec.config.phase: is "Done", want one of`,
		},
		"PhaseOfDeletion": {
			reason: "A phase that a Reconcile cannot set is refused.",
			raw:    "{" + meta + `,"initialPhase":"Deleting"}`, want: `spec.config.initialPhase: is "Deleting"`,
		},
		"BareProviderStatus": {
			reason: "A providerStatus without a kind is rejected, because the item could no longer be written.",
			raw:    "{" + meta + `,"providerStatus":{"replicas":3}}`, want: "spec.config.providerStatus: ",
		},
		"TwoSchedules": {
			reason: "Only one of every and cron may be set.",
			raw:    "{" + meta + `,"continuousReconcile":{"every":"1m","cron":"@daily"}}`, want: "spec.config.continuousReconcile: ",
		},
		"BrokenCron": {
			reason: "An invalid cron expression is rejected.",
			raw:    "{" + meta + `,"continuousReconcile":{"cron":"at noon"}}`, want: "spec.config.continuousReconcile: ",
		},
	} {
		t.Run(name+" [D4]", func(t *testing.T) {
			di := &lsv1alpha1.DeployItem{}
			if tc.raw != "" {
				di.Spec.Configuration = &runtime.RawExtension{Raw: []byte(tc.raw)}
			}
			_, err := decode(di)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\ndecode(...): want an error with %q, got %v", tc.reason, tc.want, err)
			}
			if diff := cmp.Diff([]lsv1alpha1.ErrorCode{lsv1alpha1.ErrorConfigurationProblem}, contract.ErrorCodes(err)); diff != "" {
				t.Errorf("%s\nCodes(err): -want, +got:\n%s", tc.reason, diff)
			}
			if spec, err := getSchedule(di); spec != nil || err != nil {
				t.Errorf("%s\nschedule(...): a wrong configuration has none, got %v, %v", tc.reason, spec, err)
			}
		})
	}
}

func TestDecodeAcceptsValidConfigurations(t *testing.T) {
	for _, fields := range []string{
		"", `"phase":""`, `"phase":null,"export":null`, `"phase":"Succeeded"`, `"initialPhase":"Progressing","phase":"Failed"`,
		`"providerStatus":{"apiVersion":"v1","kind":"Status"}`, `"export":{"a":[1,2]}`, `"export":"text"`,
		`"continuousReconcile":{}`, `"continuousReconcile":{"every":"3s"}`, `"continuousReconcile":{"cron":"@daily"}`,
	} {
		if _, err := decode(newItem(fields)); err != nil {
			t.Errorf("decode({%s}): %v", fields, err)
		}
	}
}

func TestGetPhaseAfter(t *testing.T) {
	var (
		none        *lsv1alpha1.DeployItemPhase
		empty       = new(lsv1alpha1.DeployItemPhase)
		failed      = &lsv1alpha1.DeployItemPhases.Failed
		progressing = &lsv1alpha1.DeployItemPhases.Progressing
	)
	for name, tc := range map[string]struct {
		phase, initial *lsv1alpha1.DeployItemPhase
		stored, want   lsv1alpha1.DeployItemPhase
	}{
		"succeeds by default":                   {none, none, "Init", "Succeeded"},
		"succeeds by default in each phase":     {none, none, "Progressing", "Succeeded"},
		"ignores an empty phase":                {empty, empty, "Init", "Succeeded"},
		"sets phase":                            {failed, none, "Init", "Failed"},
		"sets phase at each call":               {progressing, none, "Failed", "Progressing"},
		"sets initialPhase in Init":             {none, progressing, "Init", "Progressing"},
		"sets initialPhase without a phase":     {none, failed, "", "Failed"},
		"keeps the phase that initialPhase set": {none, failed, "Progressing", "Progressing"},
		"does not succeed after initialPhase":   {none, progressing, "Failed", "Failed"},
		"prefers phase to initialPhase":         {failed, progressing, "Init", "Failed"},
	} {
		t.Run(name+" [D1]", func(t *testing.T) {
			config := &mockv1alpha1.ProviderConfiguration{Phase: tc.phase, InitialPhase: tc.initial}
			if got := getPhaseAfter(config, tc.stored); got != tc.want {
				t.Errorf("phaseAfter(..., %q): want %q, got %q", tc.stored, tc.want, got)
			}
		})
	}
}
