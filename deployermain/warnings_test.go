// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"fmt"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
)

func TestWarningLog(t *testing.T) {
	var got []string
	log := func(verbosity int) *WarningLog {
		got = nil
		return NewWarningLog(funcr.New(func(_, args string) { got = append(got, args) }, funcr.Options{Verbosity: verbosity}))
	}
	const finalizer = `metadata.finalizers: "finalizer.landscaper.gardener.cloud": prefer a domain-qualified finalizer name`
	send := func(w *WarningLog) {
		for range 3 {
			w.HandleWarningHeaderWithContext(t.Context(), 299, "", finalizer)
			w.HandleWarningHeaderWithContext(t.Context(), 299, "", "v1 Old is deprecated")
			w.HandleWarningHeaderWithContext(t.Context(), 299, "", "")
			w.HandleWarningHeaderWithContext(t.Context(), 199, "", "of another kind")
		}
	}
	old := `"level"=0 "msg"="warning" "text"="v1 Old is deprecated"`
	send(log(0))
	if diff := cmp.Diff([]string{old}, got); diff != "" {
		t.Errorf("want each warning once at V(0), except the warning about the finalizer: -want, +got:\n%s", diff)
	}
	send(log(1))
	if len(got) != 2 {
		t.Errorf("at V(1) the finalizer's too, got %q", got)
	}
	w := log(0)
	for i := range 3 * maxWarnings {
		w.HandleWarningHeaderWithContext(t.Context(), 299, "", fmt.Sprint(i))
	}
	if len(w.seen) > maxWarnings {
		t.Errorf("it remembers %d warnings, more than %d", len(w.seen), maxWarnings)
	}
}
