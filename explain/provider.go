// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/gardener/landscaper/apis/deployer/utils/managedresource"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/stategraph"
)

// These constants are the possible states of an object.
const (
	stateApplied   = "applied"     // written, and ready as far as is known
	stateNotReady  = "not ready"   // the item waits for the object
	statePending   = "pending"     // written, but not usable yet
	statePatchDue  = "patch due"   // a patch that must follow the deployment was not sent yet
	stateUnwritten = "not written" // recorded in the inventory, but not written yet
	stateDeleting  = "deleting"    // its deletion was accepted
	stateMayRemain = "may remain"  // in a cluster that may be the cluster of the item or one that it no longer uses
	stateFormer    = "former"      // in a cluster that the item no longer uses; will be deleted there
	stateListed    = "listed"      // listed by one of Landscaper's own deployers; nothing else is known
)

// providerStatus contains the fields that the provider statuses of the manifest deployer, of declarative deployers and
// of state graphs have in common.
type providerStatus struct {
	Inventory   apply.Inventory `json:"inventory"`
	DeployerKit struct {
		Inventory apply.Inventory `json:"inventory"`
	} `json:"deployerkit"`
	Managed    managedresource.ManagedResourceStatusList `json:"managedResources"`
	Components []stategraph.ComponentStatus              `json:"components"`
	Omitted    int                                       `json:"omitted"`
}

// provider reads the objects and the graph from the provider status. If the provider status cannot be decoded, both
// results are nil.
func (f *Facts) provider() (*Objects, *Graph) {
	raw := f.Item.Status.ProviderStatus
	if raw == nil || len(raw.Raw) == 0 || len(raw.Raw) > contract.MaxProviderStatus {
		return nil, nil
	}
	var s providerStatus
	if json.Unmarshal(raw.Raw, &s) != nil {
		return nil, nil
	}
	s.complete()
	return f.objects(&s), graphOf(&s)
}

// complete adds the references that only the list of managed resources contains to the inventory. If the list and the
// inventory differ in length, it removes the entries that lack a reference. See resources.StatusFormat.Store.
func (s *providerStatus) complete() {
	if len(s.Managed) == len(s.Inventory.Entries) {
		for i, m := range s.Managed {
			if e := &s.Inventory.Entries[i]; e.Name == "" {
				e.APIVersion, e.Kind, e.Namespace, e.Name = m.Resource.APIVersion, m.Resource.Kind, m.Resource.Namespace, m.Resource.Name
			}
		}
	}
	s.Inventory.Entries = slices.DeleteFunc(s.Inventory.Entries, func(e apply.Entry) bool { return e.Name == "" })
}

// objects returns the objects of the item with their states.
func (f *Facts) objects(s *providerStatus) *Objects {
	waits := ""
	if c := contract.GetCondition(f.Item.Status.Conditions, contract.ConditionWaiting); c != nil && c.Status == "True" {
		waits = c.Message
	}
	var all []Object
	for _, e := range slices.Concat(s.Inventory.Entries, s.DeployerKit.Inventory.Entries) {
		o := objectOf(e.Ref(), stateOf(&e))
		if reason, waiting := waitOf(waits, e.Ref()); o.State == stateApplied && waiting {
			o.State, o.Reason = stateNotReady, line(reason)
		}
		o.MayBeGone = e.Finish.IsDone()
		all = append(all, o)
	}
	for _, former := range slices.Concat(s.Inventory.Former, s.DeployerKit.Inventory.Former) {
		for _, e := range former.Entries {
			all = append(all, objectOf(e.Ref(), stateIn(former.Cluster)))
		}
	}
	if len(all) == 0 {
		for _, m := range s.Managed {
			all = append(all, Object{
				APIVersion: word(m.Resource.APIVersion), Kind: word(m.Resource.Kind), Namespace: word(m.Resource.Namespace), Name: word(m.Resource.Name), State: stateListed,
			})
		}
	}
	if len(all) == 0 {
		return nil
	}
	out := &Objects{Counts: map[string]int{}, Drift: f.drift()}
	for _, o := range all {
		out.Counts[o.State]++
	}
	slices.SortStableFunc(all, func(a, b Object) int { return cmp.Compare(rankOf(a.State), rankOf(b.State)) })
	out.Omitted = max(0, len(all)-maxObjects)
	out.Listed = all[:len(all)-out.Omitted]
	return out
}

// stateIn returns the state of the objects in a cluster that the item has left, or may have left.
func stateIn(former *apply.Cluster) string {
	if former != nil && former.Unverified {
		return stateMayRemain
	}
	return stateFormer
}

func objectOf(ref apply.Ref, state string) Object {
	return Object{APIVersion: word(ref.APIVersion), Kind: word(ref.Kind), Namespace: word(ref.Namespace), Name: word(ref.Name), State: state}
}

// rankOf returns the rank of a state, for sorting. States that need attention come first.
func rankOf(state string) int {
	switch state {
	case stateApplied, stateListed:
		return 1
	}
	return 0
}

// stateOf returns the state of an object in an inventory.
func stateOf(e *apply.Entry) string {
	switch {
	case e.Deleting:
		return stateDeleting
	case e.Hash == "":
		return stateUnwritten
	case e.Pending:
		return statePending
	case e.PatchDue:
		return statePatchDue
	}
	return stateApplied
}

// waitOf returns the reason why the item waits for an object. The parameter `message` is the message of the condition
// Waiting, which lists objects in the form "Kind namespace/name: reason".
func waitOf(message string, ref apply.Ref) (reason string, found bool) {
	_, rest, found := strings.Cut(message, ref.String()+": ")
	if !found {
		return "", false
	}
	reason, _, _ = strings.Cut(rest, "; ")
	return reason, true
}

// drift returns the messages of those events that report changes by other clients.
func (f *Facts) drift() []string {
	var out []string
	for _, e := range f.Events {
		if e.Reason == "Drift" {
			out = append(out, line(e.Message))
		}
	}
	return out[max(0, len(out)-maxDrift):]
}

// graphOf returns the components of a state graph.
func graphOf(s *providerStatus) *Graph {
	if len(s.Components) == 0 {
		return nil
	}
	g := &Graph{Omitted: max(0, s.Omitted) + max(0, len(s.Components)-maxNodes)}
	for _, c := range s.Components[:min(len(s.Components), maxNodes)] {
		n := Node{Name: word(c.Name), State: word(string(c.State)), Reason: line(c.Reason)}
		for _, by := range c.BlockedBy[:min(len(c.BlockedBy), maxBlockers)] {
			n.BlockedBy = append(n.BlockedBy, word(by))
		}
		g.Nodes = append(g.Nodes, n)
	}
	return g
}
