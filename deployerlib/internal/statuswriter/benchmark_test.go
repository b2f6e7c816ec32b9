// SPDX-License-Identifier: Apache-2.0

package statuswriter

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib/internal/itempatch"
	"github.com/deployerkit/deployerkit/deployerlib/internal/itemstate"
)

// recordingClient is a client that decodes the same recorded response for every patch.
type recordingClient struct {
	client.Client

	response []byte
}

func (r *recordingClient) SubResource(string) client.SubResourceClient {
	return &recordingStatusClient{recorded: r}
}

type recordingStatusClient struct {
	client.SubResourceClient

	recorded *recordingClient
}

func (r *recordingStatusClient) Patch(_ context.Context, obj client.Object, p client.Patch, _ ...client.SubResourcePatchOption) error {
	if _, err := p.Data(obj); err != nil {
		return err
	}
	return json.Unmarshal(r.recorded.response, obj)
}

// noTelemetry is a Telemetry that records nothing.
type noTelemetry struct{}

func (noTelemetry) RecordRequest(string)                                {}
func (noTelemetry) RecordWrite(types.NamespacedName, itempatch.Changes) {}
func (noTelemetry) RecordMissingRight(string)                           {}

// newLargeItem returns an item with a configuration of 30 KiB and a provider status of 10 KiB.
func newLargeItem() *lsv1alpha1.DeployItem {
	di := &lsv1alpha1.DeployItem{}
	di.Namespace, di.Name, di.UID, di.ResourceVersion, di.Generation = "ns", "item", "uid", "7", 1
	di.Finalizers = []string{lsv1alpha1.LandscaperFinalizer}
	di.Spec.Type = "example.org/bench"
	objects := func(n, size int) *runtime.RawExtension {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","namespace":"default","name":"cm-%d","text":%q}`, i, strings.Repeat("x", size)))
		}
		return &runtime.RawExtension{Raw: []byte(`{"apiVersion":"example.org/v1","kind":"Bench","objects":[` + strings.Join(list, ",") + `]}`)}
	}
	di.Spec.Configuration = objects(50, 530)
	di.Status.ObservedGeneration, di.Status.JobID, di.Status.Phase = 1, "job", lsv1alpha1.DeployItemPhases.Progressing
	di.Status.ProviderStatus = objects(50, 130)
	return di
}

// BenchmarkStoreOutcome writes the status of an item whose configuration and provider status are large. The first case
// changes only the phase. The second case also changes the provider status.
func BenchmarkStoreOutcome(b *testing.B) {
	for name, change := range map[string]func(*lsv1alpha1.DeployItemStatus){
		"phase": func(*lsv1alpha1.DeployItemStatus) {},
		"provider status": func(s *lsv1alpha1.DeployItemStatus) {
			s.ProviderStatus = &runtime.RawExtension{Raw: []byte(strings.Replace(string(s.ProviderStatus.Raw), "cm-7", "cm-x", 1))}
		},
	} {
		b.Run(name, func(b *testing.B) {
			read := newLargeItem()
			status := read.Status.DeepCopy()
			status.Phase, status.JobIDFinished = lsv1alpha1.DeployItemPhases.Succeeded, "job"
			change(status)
			answer := read.DeepCopy()
			answer.Status = *status
			response, err := json.Marshal(answer)
			if err != nil {
				b.Fatal(err)
			}
			scheme := runtime.NewScheme()
			if err := lsv1alpha1.AddToScheme(scheme); err != nil {
				b.Fatal(err)
			}
			c := &recordingClient{Client: fake.NewClientBuilder().WithScheme(scheme).Build(), response: response}
			w := New(Options{Client: c, Live: c, Clock: clocktesting.NewFakePassiveClock(time.Unix(1, 0)), Telemetry: noTelemetry{}})
			state := itemstate.NewTracker().Get(types.NamespacedName{Namespace: "ns", Name: "item"})
			b.ReportAllocs()
			for b.Loop() {
				s := w.Open(state, read)
				s.EnsureCopy()
				s.started = true
				if res := s.StoreOutcome(b.Context(), Update{Decision: contract.Decision{Revision: contract.RevisionJobID}, Status: status, IsOutcome: true}); res.Err != nil {
					b.Fatal(res.Err)
				}
			}
		})
	}
}
