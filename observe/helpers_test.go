// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata/fake"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

const item = types.UID("4f1e")

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	start      = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	settings   = Object{configMaps, types.NamespacedName{Namespace: "shop", Name: "settings"}}
)

// withVersion sets a resourceVersion.
func withVersion(version string) func(*metav1.PartialObjectMetadata) {
	return func(m *metav1.PartialObjectMetadata) { m.ResourceVersion = version }
}

// withManager adds a managedFields entry. Its time is after seconds later than start. If after is negative, the entry
// has no time.
func withManager(manager, operation, subresource, fields string, after int) func(*metav1.PartialObjectMetadata) {
	return func(m *metav1.PartialObjectMetadata) {
		e := metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationType(operation), Subresource: subresource,
			APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
		}
		if after >= 0 {
			t := metav1.NewTime(start.Add(time.Duration(after) * time.Second))
			e.Time = &t
		}
		m.ManagedFields = append(m.ManagedFields, e)
	}
}

func withOwnFields(fields string) func(*metav1.PartialObjectMetadata) {
	return withManager(ownership.FormatFieldManager(item), "Apply", "", fields, 0)
}

func withItemLabel(owner types.UID) func(*metav1.PartialObjectMetadata) {
	return func(m *metav1.PartialObjectMetadata) {
		m.Labels = map[string]string{ownership.LabelItem: string(owner)}
	}
}

// newObject returns the item's ConfigMap with the given changes. The ConfigMap has the name "settings" and the UID
// "u1".
func newObject(change ...func(*metav1.PartialObjectMetadata)) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings", UID: "u1", ResourceVersion: "10"},
	}
	withItemLabel(item)(m)
	for _, c := range change {
		c(m)
	}
	return m
}

// newOwned returns the expectation of an item. The argument is the API server's answer to the item's last write.
func newOwned(m *metav1.PartialObjectMetadata) BaselineObject {
	return BaselineObject{
		Object: settings, UID: m.UID, Fingerprint: ownership.ComputeFingerprint(m, ownership.FormatFieldManager(item)), ResourceVersion: m.ResourceVersion,
	}
}

// driftLog collects events as lines.
type driftLog struct {
	mu    sync.Mutex
	lines []string
}

func (l *driftLog) add(e Drift) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf("%s %s", e.Item, e))
}

func (l *driftLog) listLines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.lines
	l.lines = nil
	return out
}

// newTestWatcher returns a Watcher with one open source, the store of the source, and a log of the reported drift. The
// test itself delivers events to the source.
func newTestWatcher(t *testing.T) (*Watcher, *store, *driftLog) {
	t.Helper()
	w := New(fake.NewSimpleMetadataClient(fake.NewTestScheme()), Options{})
	w.Start(t.Context())
	l := &driftLog{}
	w.OnDrift(l.add)
	return w, addStore(w, newStoredScope(configMaps, "")), l
}

// addStore adds an open source that stores objects to a Watcher. The source has no reflector.
func addStore(w *Watcher, in scope) *store {
	s := &store{source: &source{w: w, scope: in, stop: func() {}, used: w.opts.Clock.Now(), changed: make(chan struct{})}, objects: map[name]*storedObject{}}
	s.sink = s
	w.sources[in], w.stores[in] = s.source, s
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// startTime is the time at which fake clocks start.
var startTime = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
