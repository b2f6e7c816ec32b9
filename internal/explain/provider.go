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
	Undo       []stategraph.UndoEntry                    `json:"undo"`
	Release    *releaseStatus                            `json:"release"`
}

// releaseStatus contains the fields of the release in the provider status of the Helm deployer.
type releaseStatus struct {
	Name         string `json:"name"`
	Namespace    string `json:"namespace"`
	Revision     int    `json:"revision"`
	Status       string `json:"status"`
	Chart        string `json:"chart"`
	ChartVersion string `json:"chartVersion"`
	ChartDigest  string `json:"chartDigest"`
	FirstFailure string `json:"firstFailure"`
}

// providerFacts is what the provider status says about an item. Its fields are nil if they are not known.
type providerFacts struct {
	objects *Objects
	graph   *Graph
	release *Release
}

// readProviderStatus reads the provider status. If it cannot be decoded, the result is empty.
func (f *Facts) readProviderStatus() providerFacts {
	raw := f.Item.Status.ProviderStatus
	if raw == nil || len(raw.Raw) == 0 || len(raw.Raw) > contract.MaxProviderStatus {
		return providerFacts{}
	}
	var s providerStatus
	if json.Unmarshal(raw.Raw, &s) != nil {
		return providerFacts{}
	}
	s.addMissingRefs()
	return providerFacts{objects: f.toObjects(&s), graph: toGraph(&s), release: toRelease(s.Release)}
}

// toRelease returns the release of a Helm deployer, or nil.
func toRelease(s *releaseStatus) *Release {
	if s == nil || s.Name == "" {
		return nil
	}
	return &Release{
		Name: shortenName(s.Name), Namespace: shortenName(s.Namespace), Revision: s.Revision, Status: shortenName(s.Status),
		Chart: shortenName(s.Chart), ChartVersion: shortenName(s.ChartVersion), ChartDigest: shortenName(s.ChartDigest), Failure: shortenText(s.FirstFailure),
	}
}

// addMissingRefs adds the references that only the list of managed resources contains to the inventory. If the list and
// the inventory differ in length, it removes the entries that lack a reference. See resources.StatusFormat.Store.
func (s *providerStatus) addMissingRefs() {
	if len(s.Managed) == len(s.Inventory.Entries) {
		for i, m := range s.Managed {
			if e := &s.Inventory.Entries[i]; e.Name == "" {
				e.APIVersion, e.Kind, e.Namespace, e.Name = m.Resource.APIVersion, m.Resource.Kind, m.Resource.Namespace, m.Resource.Name
			}
		}
	}
	s.Inventory.Entries = slices.DeleteFunc(s.Inventory.Entries, func(e apply.Entry) bool { return e.Name == "" })
}

// toObjects returns the objects of the item with their states.
func (f *Facts) toObjects(s *providerStatus) *Objects {
	waits := ""
	if c := contract.GetCondition(f.Item.Status.Conditions, contract.ConditionWaiting); c != nil && c.Status == "True" {
		waits = c.Message
	}
	var all []Object
	for _, e := range slices.Concat(s.Inventory.Entries, s.DeployerKit.Inventory.Entries) {
		o := toObject(e.Ref(), getObjectState(&e))
		if reason, waiting := findWaitReason(waits, e.Ref()); o.State == stateApplied && waiting {
			o.State, o.Reason = stateNotReady, shortenText(reason)
		}
		o.MayBeGone = e.Finish.IsDone()
		all = append(all, o)
	}
	for _, former := range slices.Concat(s.Inventory.Former, s.DeployerKit.Inventory.Former) {
		for _, e := range former.Entries {
			all = append(all, toObject(e.Ref(), getFormerState(former.Cluster)))
		}
	}
	if len(all) == 0 {
		for _, m := range s.Managed {
			all = append(all, Object{
				APIVersion: shortenName(m.Resource.APIVersion), Kind: shortenName(m.Resource.Kind), Namespace: shortenName(m.Resource.Namespace), Name: shortenName(m.Resource.Name), State: stateListed,
			})
		}
	}
	if len(all) == 0 {
		return nil
	}
	out := &Objects{Counts: map[string]int{}, Drift: f.listDrift()}
	for _, o := range all {
		out.Counts[o.State]++
	}
	slices.SortStableFunc(all, func(a, b Object) int { return cmp.Compare(getStateRank(a.State), getStateRank(b.State)) })
	out.Omitted = max(0, len(all)-maxObjects)
	out.Listed = all[:len(all)-out.Omitted]
	return out
}

// getFormerState returns the state of the objects in a cluster that the item has left, or may have left.
func getFormerState(former *apply.ClusterID) string {
	if former != nil && former.Unverified {
		return stateMayRemain
	}
	return stateFormer
}

func toObject(ref apply.Ref, state string) Object {
	return Object{APIVersion: shortenName(ref.APIVersion), Kind: shortenName(ref.Kind), Namespace: shortenName(ref.Namespace), Name: shortenName(ref.Name), State: state}
}

// getStateRank returns the rank of a state, for sorting. States that need attention come first.
func getStateRank(state string) int {
	switch state {
	case stateApplied, stateListed:
		return 1
	}
	return 0
}

// getObjectState returns the state of an object in an inventory.
func getObjectState(e *apply.Entry) string {
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

// findWaitReason returns the reason why the item waits for an object. It finds the reason in message, the message of
// the condition Waiting, which lists objects in the form "Kind namespace/name: reason".
func findWaitReason(message string, ref apply.Ref) (reason string, found bool) {
	_, rest, found := strings.Cut(message, ref.String()+": ")
	if !found {
		return "", false
	}
	reason, _, _ = strings.Cut(rest, "; ")
	return reason, true
}

// listDrift returns the messages of those events that report changes by other clients.
func (f *Facts) listDrift() []string {
	var out []string
	for _, e := range f.Events {
		if e.Reason == "Drift" {
			out = append(out, shortenText(e.Message))
		}
	}
	return out[max(0, len(out)-maxDrift):]
}

// toGraph returns the components of a state graph.
func toGraph(s *providerStatus) *Graph {
	if len(s.Components) == 0 {
		return nil
	}
	requires := s.listRequirements()
	g := &Graph{Omitted: max(0, s.Omitted) + max(0, len(s.Components)-maxNodes)}
	for _, c := range s.Components[:min(len(s.Components), maxNodes)] {
		n := Node{Name: shortenName(c.Name), State: shortenName(string(c.State)), Reason: shortenText(c.Reason)}
		for _, by := range c.BlockedBy[:min(len(c.BlockedBy), maxBlockers)] {
			n.BlockedBy = append(n.BlockedBy, shortenName(by))
		}
		for _, required := range requires[c.Name][:min(len(requires[c.Name]), maxBlockers)] {
			n.Requires = append(n.Requires, shortenName(required))
		}
		g.Nodes = append(g.Nodes, n)
	}
	return g
}

// listRequirements returns the components that each component requires, in order. The status records them with the
// objects of a component and with its Delete; they are not known for a component that has neither.
func (s *providerStatus) listRequirements() map[string][]string {
	out := map[string][]string{}
	for _, e := range s.Inventory.Entries {
		out[e.Component] = append(out[e.Component], e.Requires...)
	}
	for _, u := range s.Undo {
		out[u.Name] = append(out[u.Name], u.Requires...)
	}
	for name, required := range out {
		slices.Sort(required)
		out[name] = slices.Compact(required)
	}
	return out
}
