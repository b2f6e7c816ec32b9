// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/ownership"
)

// withUID returns copies of entries of objects that were written and have a UID.
func withUID(entries []apply.Entry, uid types.UID) []apply.Entry {
	out := []apply.Entry{}
	for _, entry := range entries {
		entry.UID, entry.Fingerprint, entry.Hash = uid, ownership.Fingerprint("key"), "hash"
		out = append(out, entry)
	}
	return out
}

func TestComputeRelocationToAnUnknownCluster(t *testing.T) {
	cluster := func(uid types.UID, target, server string) *apply.ClusterID {
		return &apply.ClusterID{UID: uid, Target: target, Server: server}
	}
	unverified := func(c *apply.ClusterID) *apply.ClusterID {
		out := *c
		out.Unverified = true
		return &out
	}
	a, plainA := withUID(newEntries("a"), "u"), newEntries("a")
	old, other, oldWithout := cluster("1", "old", "s"), cluster("", "new", "t"), cluster("", "old", "s")
	for name, tc := range map[string]struct {
		inv  apply.Inventory
		at   *apply.ClusterID
		want relocation
	}{
		"another Target keeps the entries twice": {
			inv: apply.Inventory{Cluster: old, Entries: a}, at: other,
			want: relocation{moved: true, inventory: apply.Inventory{Cluster: other, Entries: plainA, Former: []apply.Inventory{{Cluster: unverified(old), Entries: a}}}},
		},
		"another API server keeps the entries twice": {
			inv: apply.Inventory{Cluster: oldWithout, Entries: a}, at: cluster("", "old", "t"),
			want: relocation{moved: true, inventory: apply.Inventory{
				Cluster: cluster("", "old", "t"), Entries: plainA, Former: []apply.Inventory{{Cluster: unverified(oldWithout), Entries: a}},
			}},
		},
		"another Target after an unknown cluster keeps the entries twice": {
			inv: apply.Inventory{Cluster: other, Entries: a}, at: old,
			want: relocation{moved: true, inventory: apply.Inventory{Cluster: old, Entries: plainA, Former: []apply.Inventory{{Cluster: unverified(other), Entries: a}}}},
		},
		"another Target without objects is no reason to keep anything": {
			inv: apply.Inventory{Cluster: old}, at: other, want: relocation{moved: true, inventory: apply.Inventory{Cluster: other}},
		},
		"the same Target and API server without the UID is the same cluster": {
			inv: apply.Inventory{Cluster: old, Entries: a}, at: oldWithout, want: relocation{inventory: apply.Inventory{Cluster: old, Entries: a}},
		},
		"the same Target and API server with a UID that is new is the same cluster": {
			inv: apply.Inventory{Cluster: oldWithout, Entries: a}, at: old, want: relocation{inventory: apply.Inventory{Cluster: old, Entries: a}},
		},
		"another API server with the same UID is the same cluster": {
			inv: apply.Inventory{Cluster: old, Entries: a}, at: cluster("1", "old", "t"),
			want: relocation{inventory: apply.Inventory{Cluster: cluster("1", "old", "t"), Entries: a}},
		},
		"a verified former cluster becomes unverified": {
			inv: apply.Inventory{Cluster: cluster("2", "new", "t"), Entries: withUID(newEntries("b"), "v"), Former: []apply.Inventory{{Cluster: old, Entries: a}}},
			at:  cluster("", "third", "x"),
			want: relocation{moved: true, inventory: apply.Inventory{Cluster: cluster("", "third", "x"), Entries: newEntries("a", "b"), Former: []apply.Inventory{
				{Cluster: unverified(old), Entries: a}, {Cluster: unverified(cluster("2", "new", "t")), Entries: withUID(newEntries("b"), "v")},
			}}},
		},
		"an unverified former cluster stays unverified, and its entries are not added again": {
			inv: apply.Inventory{Cluster: other, Former: []apply.Inventory{{Cluster: unverified(old), Entries: a}}}, at: other,
			want: relocation{inventory: apply.Inventory{Cluster: other, Former: []apply.Inventory{{Cluster: unverified(old), Entries: a}}}},
		},
		"an unverified former cluster with another UID is another cluster": {
			inv: apply.Inventory{Cluster: other, Entries: plainA, Former: []apply.Inventory{{Cluster: unverified(old), Entries: a}}}, at: cluster("2", "new", "t"),
			want: relocation{inventory: apply.Inventory{Cluster: cluster("2", "new", "t"), Entries: plainA, Former: []apply.Inventory{{Cluster: old, Entries: a}}}},
		},
		"an unverified former cluster with the same UID is merged without duplicates": {
			inv: apply.Inventory{Cluster: other, Entries: newEntries("a", "b"), Former: []apply.Inventory{{Cluster: unverified(old), Entries: a}}}, at: cluster("1", "new", "t"),
			want: relocation{inventory: apply.Inventory{Cluster: cluster("1", "new", "t"), Entries: append(withUID(newEntries("a"), "u"), newEntries("b")...)}},
		},
		"the return to an unverified former cluster is merged without duplicates": {
			inv: apply.Inventory{Cluster: other, Entries: withUID(newEntries("a"), "v"), Former: []apply.Inventory{{Cluster: unverified(oldWithout), Entries: a}}},
			at:  oldWithout,
			want: relocation{moved: true, inventory: apply.Inventory{Cluster: oldWithout, Entries: a, Former: []apply.Inventory{
				{Cluster: unverified(other), Entries: withUID(newEntries("a"), "v")},
			}}},
		},
	} {
		t.Run(name+" [F108]", func(t *testing.T) {
			if diff := cmp.Diff(tc.want, computeRelocation(tc.inv, *tc.at), cmp.AllowUnexported(relocation{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestComputeRelocationOfAStoredInventory(t *testing.T) {
	for name, tc := range map[string]struct {
		stored string
		at     apply.ClusterID
		former int
	}{
		"without the API server and with the same Target does not move": {
			stored: `{"entries":[{"v":"v1","k":"ConfigMap","ns":"ns","n":"a","u":"u"}],"cluster":{"uid":"1","target":"old"}}`,
			at:     apply.ClusterID{Target: "old", Server: "s"},
		},
		"without the API server and with another Target is unknown": {
			stored: `{"entries":[{"v":"v1","k":"ConfigMap","ns":"ns","n":"a","u":"u"}],"cluster":{"uid":"1","target":"old"}}`,
			at:     apply.ClusterID{Target: "new", Server: "s"}, former: 1,
		},
		"without a cluster does not move": {
			stored: `{"entries":[{"v":"v1","k":"ConfigMap","ns":"ns","n":"a","u":"u"}]}`, at: apply.ClusterID{Target: "new", Server: "s"},
		},
	} {
		t.Run("of an earlier version "+name+" [F108]", func(t *testing.T) {
			inv := apply.Inventory{}
			if err := json.Unmarshal([]byte(tc.stored), &inv); err != nil {
				t.Fatal(err)
			}
			got := computeRelocation(inv, tc.at)
			if got.moved != (tc.former > 0) || len(got.inventory.Former) != tc.former || len(got.inventory.Entries) != 1 {
				t.Errorf("want %d former clusters, got %+v", tc.former, got)
			}
			if got.inventory.Cluster.Server != "s" {
				t.Errorf("the API server is not recorded: %+v", got.inventory.Cluster)
			}
		})
	}
}

// fakeLiveObjects is a client for a cluster that contains objects with these UIDs, by name. It counts the reads.
type fakeLiveObjects struct {
	client.Reader
	uids  map[string]types.UID
	err   error // the error for other objects
	reads int
}

func (l *fakeLiveObjects) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	l.reads++
	uid, found := l.uids[key.Name]
	if !found {
		return l.err
	}
	obj.(*metav1.PartialObjectMetadata).UID = uid
	return nil
}

func TestResolveRelocation(t *testing.T) {
	configMaps := schema.GroupResource{Resource: "configmaps"}
	gone, forbidden := apierrors.NewNotFound(configMaps, "a"), apierrors.NewForbidden(configMaps, "a", errors.New("no"))
	from := apply.ClusterID{UID: "1", Target: "old", Server: "s"}
	for name, tc := range map[string]struct {
		from, at apply.ClusterID
		entries  []apply.Entry
		uids     map[string]types.UID
		err      error
		moved    bool
		reads    int
	}{
		"is the same if it contains an object with the same UID":        {from: from, at: apply.ClusterID{Target: "new"}, entries: withUID(newEntries("a"), "u"), uids: map[string]types.UID{"a": "u"}, reads: 1},
		"is not proved the same by an object with another UID":          {from: from, at: apply.ClusterID{Target: "new"}, entries: withUID(newEntries("a"), "u"), uids: map[string]types.UID{"a": "v"}, moved: true, reads: 1},
		"is not proved the same by an object that does not exist":       {from: from, at: apply.ClusterID{Target: "new"}, entries: withUID(newEntries("a"), "u"), err: gone, moved: true, reads: 1},
		"is not proved the same by an object that may not be read":      {from: from, at: apply.ClusterID{Target: "new"}, entries: withUID(newEntries("a"), "u"), err: forbidden, moved: true, reads: 1},
		"is not searched for objects without a UID":                     {from: from, at: apply.ClusterID{Target: "new"}, entries: newEntries("a"), moved: true},
		"is searched for a limited number of objects":                   {from: from, at: apply.ClusterID{Target: "new"}, entries: withUID(newEntries("a", "a", "a", "a", "a", "a", "a"), "u"), err: gone, moved: true, reads: maxProofReads},
		"is not searched if its UID is known":                           {from: from, at: apply.ClusterID{UID: "2", Target: "new"}, entries: withUID(newEntries("a"), "u"), moved: true},
		"is not searched if only its certificate authority has changed": {from: from, at: apply.ClusterID{UID: "1", Target: "old", Server: "t"}, entries: withUID(newEntries("a"), "u")},
		"is not searched if the Target and the API server are the same": {from: from, at: apply.ClusterID{Target: "old", Server: "s"}, entries: withUID(newEntries("a"), "u")},
	} {
		t.Run("an unknown cluster "+name+" [F108]", func(t *testing.T) {
			live := &fakeLiveObjects{uids: tc.uids, err: tc.err}
			got, err := resolveRelocation(t.Context(), live, apply.Inventory{Cluster: &tc.from, Entries: tc.entries}, tc.at)
			if err != nil {
				t.Fatal(err)
			}
			if got.moved != tc.moved || live.reads != tc.reads {
				t.Errorf("want moved %t after %d reads, got %t after %d", tc.moved, tc.reads, got.moved, live.reads)
			}
			if !tc.moved && got.inventory.Cluster.UID != "1" {
				t.Errorf("the UID of the same cluster is lost: %+v", got.inventory.Cluster)
			}
		})
	}
	t.Run("an unknown cluster that does not answer is an error [F108]", func(t *testing.T) {
		live := &fakeLiveObjects{err: errors.New("no route")}
		if _, err := resolveRelocation(t.Context(), live, apply.Inventory{Cluster: &from, Entries: withUID(newEntries("a"), "u")}, apply.ClusterID{Target: "new"}); err == nil {
			t.Error("want an error")
		}
	})
}

func TestGetServerHash(t *testing.T) {
	of := func(host, ca, token string) string {
		return getServerHash(fakeTarget{cfg: &rest.Config{Host: host, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: []byte(ca)}}})
	}
	first := of("https://a", "ca", "one")
	for name, tc := range map[string]struct {
		got  string
		same bool
	}{
		"stays with another token":                   {of("https://a", "ca", "two"), true},
		"changes with another address":               {of("https://b", "ca", "one"), false},
		"changes with another certificate authority": {of("https://a", "other", "one"), false},
	} {
		t.Run("the hash of an API server "+name+" [F108]", func(t *testing.T) {
			if (tc.got == first) != tc.same || len(tc.got) != serverHashLength {
				t.Errorf("got %q after %q", tc.got, first)
			}
		})
	}
}

// fakeTarget is a client with a configuration.
type fakeTarget struct {
	client.Reader
	cfg *rest.Config
}

func (c fakeTarget) Config() *rest.Config { return c.cfg }
