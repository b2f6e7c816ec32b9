// SPDX-License-Identifier: Apache-2.0

package itemstate

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

func TestSummarize(t *testing.T) {
	t.Parallel()
	tracker := NewTracker()
	get := func(name string) *Item { return tracker.Get(types.NamespacedName{Name: name}) }
	for _, phase := range []string{"Succeeded", "Failed", "DeleteFailed", "Progressing", ""} {
		get(phase).RecordProgress(GetProgress(newItem("1", phase).Status.Phase))
	}
	get("later").MarkUnfinished(moment.Add(time.Minute))
	get("earlier").MarkUnfinished(moment)
	want := Summary{
		Items:     map[Progress]int{ProgressSucceeded: 1, ProgressFailed: 2, ProgressUnknown: 2, ProgressUnfinished: 2},
		HandedOut: moment,
	}
	if diff := cmp.Diff(want, tracker.Summarize()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	get("earlier").RecordProgress(ProgressSucceeded)
	if got := tracker.Summarize().HandedOut; !got.Equal(moment.Add(time.Minute)) {
		t.Errorf("the oldest run in progress is of %s", got)
	}
	get("later").RecordProgress(ProgressFailed)
	if got := tracker.Summarize().HandedOut; !got.IsZero() {
		t.Errorf("the oldest run in progress is of %s, want none", got)
	}
}
