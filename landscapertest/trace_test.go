// SPDX-License-Identifier: Apache-2.0

package landscapertest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/landscapertest"
)

func TestTrace(t *testing.T) {
	var trace landscapertest.Trace
	pass := []deployerlib.Step{
		{Kind: deployerlib.StepHook, Name: "Start first"},
		{Kind: deployerlib.StepHook, Name: "Start second", Outcome: "continue"},
		{Kind: deployerlib.StepPhase, Name: "start", Outcome: "proceed"},
		{Kind: deployerlib.StepPhase, Name: "contract", Outcome: "proceed", Reason: "NewJob"},
		{Kind: deployerlib.StepWrite, Name: "status"},
		{Kind: deployerlib.StepHook, Name: "BeforeReconcile a", Err: errBoom},
		{Kind: deployerlib.StepCall, Name: "reconcile", Err: errBoom},
	}
	for range 2 {
		for _, s := range pass {
			s.Item = key
			trace.Observe(s)
		}
	}
	one := strings.Join([]string{
		"start → first → no opinion", "start → second → continue", "start → proceed", "contract → proceed (NewJob)",
		"write → status", "operate → a → error: boom", "call → reconcile: boom", "",
	}, "\n")
	if got, want := trace.Format(key), "reconcile 1\n"+one+"reconcile 2\n"+one; got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	trace.Forget(key)
	if len(trace.Steps(key)) != 0 {
		t.Error("Forget did not remove the steps")
	}
}

// countingTB is a testing.TB that counts failures.
type countingTB struct {
	testing.TB

	count int
}

func (f *countingTB) Helper()               {}
func (f *countingTB) Errorf(string, ...any) { f.count++ }

func TestCompareGolden(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "a.golden")
	landscapertest.CompareGolden(t, path, "text", true)
	landscapertest.CompareGolden(t, path, "text", false)
	if raw, err := os.ReadFile(path); err != nil || string(raw) != "text" {
		t.Errorf("%q, %v", raw, err)
	}
	probe := &countingTB{TB: t}
	landscapertest.CompareGolden(probe, path, "other", false)
	if probe.count != 1 {
		t.Errorf("got %d failures for a file that differs, want 1", probe.count)
	}
}
