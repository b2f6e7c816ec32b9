// SPDX-License-Identifier: Apache-2.0

package landscapertest_test

import (
	"testing"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// TestRevisions checks that a Landscaper supports each revision of the contract. It also checks that all methods fail
// for an unknown revision.
func TestRevisions(t *testing.T) {
	for _, revision := range contract.AllRevisions() {
		t.Run(string(revision)+" is supported [F52]", func(t *testing.T) {
			ls, _, _ := newTestLandscaper(t, landscapertest.LandscaperOptions{Revision: revision})
			if err := ls.Deploy(t.Context(), ls.Item("ns", "a", typ, nil)); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("an unknown revision is an error [F52]", func(t *testing.T) {
		ls, _, _ := newTestLandscaper(t, landscapertest.LandscaperOptions{Revision: "third"})
		ctx, di := t.Context(), ls.Item("ns", "a", typ, nil)
		_, getErr := ls.Get(ctx, key)
		_, triggerErr := ls.Trigger(ctx, key)
		_, awaitErr := ls.WaitUntilFinished(ctx, key)
		for name, err := range map[string]error{
			"Deploy": ls.Deploy(ctx, di), "Create": ls.Create(ctx, di), "Get": getErr, "Trigger": triggerErr,
			"Update": ls.Update(ctx, key, "{}"), "Operate": ls.SetOperation(ctx, key, contract.AbortOperation),
			"WaitUntilFinished": awaitErr, "Mark": ls.MarkForDeletion(ctx, key), "Delete": ls.Delete(ctx, key), "Enforce": ls.ApplyTimeouts(ctx, "ns"),
		} {
			if err == nil {
				t.Errorf("%s: no error", name)
			}
		}
	})
}
