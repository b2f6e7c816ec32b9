// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"slices"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deployerkit/deployerkit/contract"
)

// FuzzReconcile runs items with arbitrary configurations on a fake cluster. The deployer either rejects the
// configuration with an error of one line and writes nothing, or applies it. In the second case, another run changes
// nothing.
func FuzzReconcile(f *testing.F) {
	for _, seed := range []string{
		"", `"phase":"Succeeded"`, `"initialPhase":"Progressing"`, `"phase":"Failed","initialPhase":"Succeeded"`, `"phase":"Done"`,
		`"providerStatus":{"apiVersion":"v1","kind":"S","n":[1,null]}`, `"providerStatus":{"n":1}`, `"providerStatus":null,"export":null`,
		`"export":{"b": 1,  "a":"x"}`, `"export":"<&>\u2028"`, `"export":[1e400]`, `"phase":"","phase":""`, `"Phase":"Failed"`,
		`"continuousReconcile":{"every":"3s"}`, `"continuousReconcile":{"cron":"@daily","every":"1s"}`, `"continuousReconcile":{"cron":"\n"}`,
	} {
		f.Add(newItem(seed).Spec.Configuration.Raw)
	}
	f.Add([]byte("\x00"))
	f.Add([]byte(`{"apiVersion":"v1\nv2","kind":"` + strings.Repeat("x", 5000) + `"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		di := newItem("")
		di.Spec.Configuration = &runtime.RawExtension{Raw: raw}
		d := newDeployer()
		if err := d.Reconcile(t.Context(), nil, di, nil); err != nil {
			checkRefusal(t, d, di, err)
			return
		}
		checkRun(t, d, di)
	})
}

// checkRefusal checks the error for a rejected configuration, and that the deployer wrote nothing.
func checkRefusal(t *testing.T, d *deployer, di *lsv1alpha1.DeployItem, err error) {
	t.Helper()
	if diff := cmp.Diff([]lsv1alpha1.ErrorCode{lsv1alpha1.ErrorConfigurationProblem}, contract.ErrorCodes(err)); diff != "" {
		t.Errorf("codes of %v: -want, +got:\n%s", err, diff)
	}
	text := contract.NewError(err, "", "", startTime).Message
	if plain := err.Error(); !strings.HasPrefix(text, "spec.config") && !strings.HasPrefix(text, "status.exportRef") || strings.ContainsAny(plain, "\n\r\x00") {
		t.Errorf("want one line that begins with the path, got %q", plain)
	}
	if getExport(t, d) != nil || di.Status.ExportReference != nil || di.Status.ProviderStatus != nil || di.Status.Phase != "" {
		t.Errorf("refused with %v, but something was written: %+v", err, di.Status)
	}
}

// checkRun checks an item after its run. It then runs the item again and deletes it.
func checkRun(t *testing.T, d *deployer, di *lsv1alpha1.DeployItem) {
	t.Helper()
	config, err := decode(di)
	if err != nil {
		t.Fatalf("it ran, but decode says %v", err)
	}
	if !slices.Contains(phases, di.Status.Phase) {
		t.Errorf("phase = %q, want one of %v", di.Status.Phase, phases)
	}
	if err := contract.CheckProviderStatus(di.Status.ProviderStatus); err != nil {
		t.Errorf("a provider status that would poison the item: %v", err)
	}
	secret := getExport(t, d)
	if (secret != nil) != (config.Export != nil) || secret != nil && string(secret.Data["config"]) != string(*config.Export) {
		t.Errorf("export %s: got %v", config.Export, secret)
	}
	if _, err := getSchedule(di); err != nil {
		t.Errorf("schedule(...): %v", err)
	}
	first := di.Status.DeepCopy()
	if err := d.Reconcile(t.Context(), nil, di, nil); err != nil {
		t.Fatalf("the second time: %v", err)
	}
	if diff := cmp.Diff(first, &di.Status); diff != "" {
		t.Errorf("the second time: -first, +second\n%s", diff)
	}
	if diff := cmp.Diff(secret, getExport(t, d)); diff != "" {
		t.Errorf("the export was written again: %s", diff)
	}
	if err := d.Delete(t.Context(), nil, di, nil); err != nil || getExport(t, d) != nil || di.Status.ExportReference != nil {
		t.Errorf("Delete: %v, export %v", err, getExport(t, d))
	}
}
