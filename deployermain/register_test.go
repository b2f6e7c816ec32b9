// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"encoding/json"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/deployerkit/deployerkit/deployermain/registration"
)

func TestRegistration(t *testing.T) {
	selectors := []lsv1alpha1.TargetSelector{{Targets: []lsv1alpha1.ObjectReference{{Name: "a"}}}}
	t.Run("the registration describes which items the deployer is responsible for [V11]", func(t *testing.T) {
		f := parse(t, "--namespace=shop", "--item-selector=shard=a", "--history-bind-address=:9000")
		p := newProgram()
		p.Args.TargetSelectors = selectors
		args, _, err := f.args(p)
		if err != nil {
			t.Fatal(err)
		}
		want := registration.Registration{
			Name: args.Name, Identity: args.Identity, Version: args.Version, Type: string(args.Type), TargetSelectors: selectors,
			ItemSelector: "shard=a", Namespace: "shop", HistoryPort: 9000,
		}
		if diff := cmp.Diff(want, f.options.newRegistration(&args)); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	})
	t.Run("the registration is stored in the lease and keeps other annotations [V11]", func(t *testing.T) {
		c := fake.NewClientset()
		leases := registrar{LeasesGetter: c.CoordinationV1(), value: registration.Registration{Name: "me"}.Encode()}.Leases("ns")
		lease, err := leases.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			var r registration.Registration
			if err := json.Unmarshal([]byte(lease.Annotations[registration.Annotation]), &r); err != nil || r.Name != "me" || lease.Labels[registration.Label] != "true" {
				t.Errorf("%v: %+v", err, lease.ObjectMeta)
			}
			lease.Annotations, lease.Labels = map[string]string{"other": "x"}, nil
			if lease, err = leases.Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil || lease.Annotations["other"] != "x" {
				t.Fatalf("%v: %+v", err, lease)
			}
		}
	})
	t.Run("the size of the registration is limited [V11]", func(t *testing.T) {
		long := registration.Registration{Name: "me", Type: "t", ItemSelector: strings.Repeat("x", registration.MaxBytes)}
		var r registration.Registration
		if err := json.Unmarshal([]byte(long.Encode()), &r); err != nil || !r.Partial || r.ItemSelector != "" || r.Type != "t" {
			t.Errorf("%v: %+v", err, r)
		}
		long.Name = long.ItemSelector
		if got := long.Encode(); got != "" {
			t.Errorf("got %d bytes", len(got))
		}
	})
}

func TestTraces(t *testing.T) {
	t.Run("traces are exported only if an endpoint is set [V9]", func(t *testing.T) {
		provider, end, err := newTracerProvider(t.Context(), "me", logr.Discard(), newLookup(nil))
		if provider != nil || err != nil {
			t.Errorf("without one: got %v, %v", provider, err)
		}
		end()
		if provider, end, err = newTracerProvider(t.Context(), "me", logr.Discard(), newLookup(map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"})); provider == nil || err != nil {
			t.Fatalf("with one: %v", err)
		}
		end()
		if _, _, err = newTracerProvider(t.Context(), "me", logr.Discard(), newLookup(map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "x"})); err == nil {
			t.Error("want an error for an endpoint that is not a URL")
		}
	})
	t.Run("the deployer receives the tracer provider, unless it has its own [V9]", func(t *testing.T) {
		f := parse(t)
		provider, end, err := newTracerProvider(t.Context(), "me", logr.Discard(), newLookup(map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}))
		if err != nil {
			t.Fatal(err)
		}
		defer end()
		f.tracer = provider
		if args, _, err := f.args(newProgram()); err != nil || args.TracerProvider != provider {
			t.Errorf("tracer provider %v, error %v, want %v", args.TracerProvider, err, provider)
		}
	})
}
