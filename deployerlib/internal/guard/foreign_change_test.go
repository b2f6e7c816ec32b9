// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

func TestFindForeignChange(t *testing.T) {
	type status = lsv1alpha1.DeployItemStatus
	for name, tc := range map[string]struct {
		change func(*status)
		want   string
	}{
		"no change":                      {func(*status) {}, ""},
		"phase":                          {func(s *status) { s.Phase = "Succeeded" }, "status.phase"},
		"lastError":                      {func(s *status) { s.LastError = newError("X", "x", 0, 0) }, "status.lastError"},
		"conditions":                     {func(s *status) { s.Conditions = append(s.Conditions, newCondition("Theirs", "True", 0)) }, "status.conditions"},
		"provider status":                {func(s *status) { s.ProviderStatus = toRaw(`{"x":1}`) }, "status.providerStatus"},
		"export reference":               {func(s *status) { s.ExportReference = &lsv1alpha1.ObjectReference{Name: "x"} }, "status.exportRef"},
		"another job":                    {func(s *status) { s.JobID, s.Phase = "c", "Succeeded" }, ""},
		"a job that Landscaper finished": {func(s *status) { s.JobIDFinished, s.Phase = s.JobID, "Failed" }, ""},
		"another run":                    {func(s *status) { s.LastReconcileTime, s.Phase = newTimePointer(9), "Init" }, ""},
		"pickup timeout":                 {func(s *status) { s.LastError, s.Phase = newError("WaitingForPickup", "x", 0, 0), "Failed" }, ""},
		"abort timeout":                  {func(s *status) { s.LastError, s.Phase = newError("WaitingForAbort", "x", 0, 0), "Failed" }, ""},
		"interrupt":                      {func(s *status) { s.LastError, s.Phase = newError("InterruptOperation", "x", 0, 0), "Failed" }, ""},
	} {
		t.Run(name+" [F44]", func(t *testing.T) {
			stored, fresh := newStartedStatus(), newStartedStatus()
			tc.change(fresh)
			if got := FindForeignChange(stored, fresh); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
