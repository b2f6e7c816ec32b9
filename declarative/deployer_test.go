// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
)

func returnNothing(context.Context, *SyncRequest) (*SyncResponse, error) { return &SyncResponse{}, nil }

// finalizerHandler is a handler that has something to clean up.
type finalizerHandler struct{ HandlerFunc }

// Finalize implements Finalizer.
func (finalizerHandler) Finalize(context.Context, *SyncRequest) (*FinalizeResponse, error) {
	return nil, nil
}

func TestArgs(t *testing.T) {
	t.Run("the backoff is between 100 ms and 10 min [Rx8]", func(t *testing.T) {
		args := Args("echo.example.com", "example.com/echo", HandlerFunc(returnNothing), Options{})
		if want := (deployerlib.Backoff{Min: 100 * time.Millisecond, Max: 10 * time.Minute}); args.Backoff != want {
			t.Errorf("backoff %v, want %v", args.Backoff, want)
		}
		if args.Name != "echo.example.com" || args.Type != "example.com/echo" {
			t.Errorf("name and type are %q and %q", args.Name, args.Type)
		}
		args.Default()
		if err := args.Validate(); err != nil {
			t.Error(err)
		}
	})
	t.Run("a handler needs no Finalize [R1, R2]", func(t *testing.T) {
		for _, tc := range []struct {
			handler Handler
			want    bool
		}{{HandlerFunc(returnNothing), false}, {finalizerHandler{returnNothing}, true}} {
			d, _ := New(tc.handler, Options{}).(*deployer)
			if got := d.finalizer != nil; got != tc.want {
				t.Errorf("%T: has a finalizer: %t", tc.handler, got)
			}
		}
	})
	t.Run("hooks of the options run after those of the deployer", func(t *testing.T) {
		setup := extension.ReconcileExtensionHookSetup{HookTypes: []extension.HookType{extension.EndHook, extension.ShouldReconcileHook}}
		hooks := New(HandlerFunc(returnNothing), Options{}, setup).ExtensionHooks()
		if len(hooks[extension.EndHook]) != 1 || len(hooks[extension.ShouldReconcileHook]) != 2 || hooks[extension.ShouldReconcileHook][1] != nil {
			t.Errorf("hooks: %v", hooks)
		}
	})
}

func TestUseRuntimeReportsInvalidOptions(t *testing.T) {
	cases := map[string]struct {
		handler Handler
		options Options
		want    string
	}{
		"no handler":           {nil, Options{Children: []ChildKind{{APIVersion: "v1", Kind: "Pod"}}}, "handler: required"},
		"no kinds of children": {HandlerFunc(returnNothing), Options{}, "options of declarative: Children"},
		"orphaned children with an owner reference": {
			HandlerFunc(returnNothing),
			Options{Children: []ChildKind{{APIVersion: "v1", Kind: "Pod"}}, OrphanChildren: true, Tracking: &Tracking{OwnerReference: true}},
			"Tracking.OwnerReference: cannot be combined with OrphanChildren",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d, _ := New(tc.handler, tc.options).(*deployer)
			if err := d.UseRuntime(deployerlib.Runtime{}); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestFirstCallsAreSpreadAfterRestart(t *testing.T) {
	seen := map[time.Duration]bool{}
	for _, uid := range []types.UID{"a", "b", "c", "d"} {
		at := jitterDelay(uid, maxResumeJitter)
		if at < 0 || at >= maxResumeJitter || at != jitterDelay(uid, maxResumeJitter) {
			t.Errorf("%s: %s", uid, at)
		}
		seen[at] = true
	}
	if len(seen) < 3 {
		t.Errorf("not spread: %v", seen)
	}
}

func TestFinalizedIsStoredWithInventory(t *testing.T) {
	di := item("a")
	status, err := decodeStatus(nil)
	if err != nil || status.isFinalized() {
		t.Fatalf("a new status: %+v, %v", status, err)
	}
	if err := status.set(map[string]any{"a": 1}, 3); err != nil {
		t.Fatal(err)
	}
	status.finalize()
	if err := status.store(di); err != nil {
		t.Fatal(err)
	}
	again, err := decodeStatus(di.Status.ProviderStatus)
	if err != nil || !again.isFinalized() {
		t.Errorf("read again: %+v, %v", again, err)
	}
	if diff := cmp.Diff(status.handler, again.handler); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestJoinNamesListsAtMostFiveNames(t *testing.T) {
	names := strings.Split("a b c d e f g", " ")
	if got, want := joinNames(names), "a, b, c, d, e, and 2 more"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := joinNames(names[:5]); got != "a, b, c, d, e" || names[5] != "f" {
		t.Errorf("%q of %v", got, names)
	}
}
