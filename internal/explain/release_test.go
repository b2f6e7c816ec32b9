// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/internal/explain"
)

// release is the provider status of an item of the Helm deployer whose upgrade has failed.
const release = `{"apiVersion": "helm.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderStatus",
"release": {"name": "web", "namespace": "demo", "revision": 3, "status": "failed", "chart": "shop", "chartVersion": "1.2.0", "chartDigest": "sha256:0123",
"valuesDigest": "keyed", "firstFailure": "hook Job before: exit code 1\u001b[2J"}}`

func TestRelease(t *testing.T) {
	const waiting = "hook pre-upgrade Job demo/before: 0 of 1 succeeded"
	facts := newFacts(withStartedRun("Progressing", 2*time.Minute), withWaiting(waiting, time.Minute), withProviderStatus(release))
	e := explain.Explain(facts)
	t.Run("explain shows the release, what the operation waits for, and the last failure [Ex35]", func(t *testing.T) {
		want := &explain.Release{
			Name: "web", Namespace: "demo", Revision: 3, Status: "failed", Chart: "shop", ChartVersion: "1.2.0", ChartDigest: "sha256:0123",
			Failure: "hook Job before: exit code 1 [2J",
		}
		if diff := cmp.Diff(want, e.Release); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
		if len(e.Waits) != 1 || e.Waits[0].For != waiting {
			t.Errorf("it waits for %+v", e.Waits)
		}
		out := e.Format(explain.Style{})
		text := strings.Join(strings.Fields(out), " ")
		for _, want := range []string{"Release demo/web: revision 3, failed, chart shop 1.2.0", "- the last operation failed: hook Job before: exit code 1", waiting} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in:\n%s", want, out)
			}
		}
	})
	t.Run("tree shows the release of an item [Ex35]", func(t *testing.T) {
		item := facts.Item
		tree := readTree(t, newCluster(t, nil, item, facts.Target), explain.TreeOptions{Name: item.Name})
		found := tree.Roots[0].Children
		want := &explain.TreeNode{
			Kind: "HelmRelease", Namespace: "demo", Name: "web", Cluster: "target", Phase: "failed", Message: "revision 3, failed, chart shop 1.2.0", Failed: true,
		}
		if len(found) != 1 || cmp.Diff(want, found[0]) != "" {
			t.Errorf("the children of the item are %+v", found)
		}
	})
	t.Run("an item in manifest mode has no revision [Ex35]", func(t *testing.T) {
		facts := newFacts(withProviderStatus(`{"release": {"name": "web", "namespace": "demo", "chart": "shop", "chartVersion": "1.2.0"}}`))
		if got := explain.Explain(facts).Release; got == nil || got.String() != "chart shop 1.2.0" {
			t.Errorf("the release is %v", got)
		}
	})
	t.Run("other items have no release", func(t *testing.T) {
		facts := newFacts(withProviderStatus(inventory))
		if got := explain.Explain(facts).Release; got != nil {
			t.Errorf("the release is %v", got)
		}
	})
}
