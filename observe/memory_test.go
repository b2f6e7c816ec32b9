// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"runtime"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// TestMemory ensures that a watched object with an expectation takes less than 1 KiB in total. test/envtest/bench
// measures the same with a real API server.
func TestMemory(t *testing.T) {
	const objects, perItem, limit = 20_000, 50, 1024
	w, s, l := newTestWatcher(t)
	before := getHeapSize()
	must(t, s.Replace(nil, "1"))
	for i := range objects {
		must(t, s.Add(newNumbered(i, types.UID(fmt.Sprintf("%036d", i/perItem)))))
	}
	watched := getHeapSize() - before
	for i := 0; i < objects; i += perItem {
		owner := types.UID(fmt.Sprintf("%036d", i/perItem))
		var all []BaselineObject
		for k := i; k < i+perItem; k++ {
			m := newNumbered(k, owner)
			all = append(all, BaselineObject{
				Object: Object{configMaps, types.NamespacedName{Namespace: m.Namespace, Name: m.Name}},
				UID:    m.UID, Fingerprint: ownership.ComputeFingerprint(m, ownership.FormatFieldManager(owner)), ResourceVersion: m.ResourceVersion,
			})
		}
		w.SetBaseline(owner, all)
	}
	total := getHeapSize() - before
	t.Logf("%d B per watched object, %d B with what is expected of it", watched/objects, total/objects)
	if total/objects >= limit {
		t.Errorf("%d B per object, want less than %d", total/objects, limit)
	}
	if got := l.listLines(); got != nil {
		t.Errorf("%d events, the first: %s", len(got), got[0])
	}
	if got := w.GetStats(); got != (Stats{Watches: 1, Objects: objects, Items: objects / perItem}) {
		t.Errorf("%+v", got)
	}
}

func getHeapSize() uint64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// newNumbered returns an object with a separate copy of each string, like an object that the metadata client has
// decoded.
func newNumbered(i int, owner types.UID) *metav1.PartialObjectMetadata {
	m := newObject(withManager(ownership.FormatFieldManager(owner), "Apply", "", both, 0), withItemLabel(types.UID(string([]byte(owner)))))
	m.Name = fmt.Sprintf("settings-of-application-%06d", i)
	m.Namespace = fmt.Sprintf("namespace-%02d", i%10)
	m.UID = types.UID(fmt.Sprintf("%036d", i))
	m.ResourceVersion = fmt.Sprint(1_000_000 + i)
	return m
}
