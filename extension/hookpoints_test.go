// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/extension"
)

func TestPoints(t *testing.T) {
	t.Run("each hook type has one row, in the order of a reconcile", func(t *testing.T) {
		want := []extension.HookType{
			extension.StartHook, extension.DuringResponsibilityCheckHook, extension.AfterResponsibilityCheckHook, extension.ShouldReconcileHook,
			extension.BeforeAnyReconcileHook, extension.BeforeAbortHook, extension.BeforeForceReconcileHook, extension.BeforeDeleteHook,
			extension.BeforeReconcileHook, extension.EndHook,
		}
		if diff := cmp.Diff(want, extension.AllHookTypes()); diff != "" {
			t.Errorf("types: -want +got:\n%s", diff)
		}
		var got []extension.HookType
		for _, p := range extension.AllHookPoints() {
			got = append(got, p.Type)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("points: -want +got:\n%s", diff)
		}
	})
	t.Run("no cell is empty or breaks the table", func(t *testing.T) {
		for _, p := range extension.AllHookPoints() {
			for field, value := range reflect.ValueOf(p).Fields() {
				if cell := value.String(); cell == "" || strings.ContainsAny(cell, "|\n") {
					t.Errorf("%s.%s: %q", p.Type, field.Name, cell)
				}
			}
		}
	})
	t.Run("phases are in the order of a reconcile", func(t *testing.T) {
		var got []string
		for _, p := range extension.AllHookPoints() {
			if len(got) == 0 || got[len(got)-1] != p.Phase {
				got = append(got, p.Phase)
			}
		}
		want := []string{"start", "responsibility", "contract", "should-reconcile", "operate", "end"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	t.Run("AllHookPoints returns a copy", func(t *testing.T) {
		extension.AllHookPoints()[0].Type = "changed"
		if p, ok := extension.GetHookPoint(extension.StartHook); !ok || p.Type != extension.StartHook {
			t.Errorf("PointOf(Start) = %v, %t, want the row of Start", p, ok)
		}
	})
	t.Run("only Start has no item", func(t *testing.T) {
		for _, p := range extension.AllHookPoints() {
			if start := p.Type == extension.StartHook; (p.Item == "nil") != start || (p.Target == "nil") != start {
				t.Errorf("%s: item %s, target %s", p.Type, p.Item, p.Target)
			}
		}
	})
	t.Run("an unknown type has no row", func(t *testing.T) {
		if _, ok := extension.GetHookPoint("Stop"); ok {
			t.Error("got one")
		}
	})
}
