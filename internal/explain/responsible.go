// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// findResponsible explains which deployer processes the item.
func (f *Facts) findResponsible() Responsible {
	var out Responsible
	if d := f.Item.Status.Deployer; d.Name != "" || d.Identity != "" {
		out.Deployer = &Deployer{Name: shortenName(d.Name), Identity: shortenName(d.Identity), Version: shortenName(d.Version)}
	}
	if ref := f.Item.Spec.Target; ref != nil {
		out.Target = &Target{Name: shortenName(ref.Name), State: "unknown"}
		switch {
		case f.TargetMissing:
			out.Target.State = "missing"
		case f.Target != nil:
			out.Target.State, out.Target.Type = "found", shortenName(string(f.Target.Spec.Type))
		}
	}
	known := slices.Clone(f.Deployers)
	f.sortDeployers(known)
	for i := range known {
		out.Registrations = append(out.Registrations, f.toRegistration(&known[i]))
	}
	rank := map[string]int{responsibleYes: 0, responsibleUnknown: 1, responsibleNo: 2}
	slices.SortStableFunc(out.Registrations, func(a, b Registration) int {
		return cmp.Compare(rank[a.Responsible], rank[b.Responsible])
	})
	out.Summary = f.getSummary(out.Registrations)
	shown := min(len(out.Registrations), maxRegistrations)
	out.Omitted = f.OmittedDeployers + len(out.Registrations) - shown
	out.Registrations = out.Registrations[:shown]
	return out
}

// sortDeployers sorts deployers, with those first that are most likely to process the item. A user who may create
// leases in some namespaces can forge registrations there, but not the namespace and the age of a lease. The first
// deployers are therefore one of each namespace, followed by the second one of each namespace, and so on. In each of
// these groups, deployers outside the namespace of the item come first. In each namespace, the oldest leases come
// first.
func (f *Facts) sortDeployers(known []KnownDeployer) {
	slices.SortStableFunc(known, func(a, b KnownDeployer) int {
		return cmp.Or(f.compareType(a, b), a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Source, b.Source))
	})
	place, count := make(map[string]int, len(known)), map[string]int{}
	for i := range known {
		place[known[i].Source] = count[known[i].LeaseNamespace]
		count[known[i].LeaseNamespace]++
	}
	tenant := func(d KnownDeployer) int {
		if d.LeaseNamespace == f.Item.Namespace {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(known, func(a, b KnownDeployer) int {
		return cmp.Or(cmp.Compare(place[a.Source], place[b.Source]), cmp.Compare(tenant(a), tenant(b)))
	})
}

// compareType compares deployers. Those that process items of the item's type come first.
func (f *Facts) compareType(a, b KnownDeployer) int {
	other := func(d KnownDeployer) int {
		if d.Type == string(f.Item.Spec.Type) {
			return 0
		}
		return 1
	}
	return cmp.Compare(other(a), other(b))
}

// limitDeployers removes the deployers with the lowest rank if there are more than n.
func (f *Facts) limitDeployers(n int) {
	if len(f.Deployers) <= n {
		return
	}
	f.sortDeployers(f.Deployers)
	f.OmittedDeployers += len(f.Deployers) - n
	f.Deployers = slices.Clip(f.Deployers[:n])
}

// toRegistration describes a known deployer, and whether the deployer is responsible for the item.
func (f *Facts) toRegistration(d *KnownDeployer) Registration {
	r := Registration{Source: shortenName(d.Source), Name: shortenName(d.Name), Working: true}
	r.Responsible, r.Why = checkResponsible(d, f)
	if d.Partial && r.Responsible == responsibleYes {
		r.Responsible, r.Why = responsibleUnknown, "the selectors of the deployer are too long for its registration"
	}
	if l := d.Lease; l != nil {
		r.Holder, r.Renewed = shortenName(l.Holder), newTime(l.Renewed)
		r.Working = l.Holder != "" && f.Now.Sub(l.Renewed) <= l.Duration
	}
	return r
}

// getSummary returns a sentence about the responsible deployer.
func (f *Facts) getSummary(known []Registration) string {
	responsible := slices.DeleteFunc(slices.Clone(known), func(r Registration) bool { return r.Responsible != responsibleYes })
	working := slices.DeleteFunc(slices.Clone(responsible), func(r Registration) bool { return !r.Working })
	switch {
	case len(working) > 1:
		return fmt.Sprintf("%d deployers are responsible for the item. They may disturb each other.", len(working))
	case len(working) == 1 && working[0].Holder != "":
		return fmt.Sprintf("%s is responsible, and its replica %s is active.", working[0].Name, working[0].Holder)
	case len(working) == 1:
		return working[0].Name + " is responsible."
	case len(responsible) > 0:
		return responsible[0].Name + " is responsible, but no replica holds its lease."
	case slices.ContainsFunc(known, func(r Registration) bool { return r.Responsible == responsibleUnknown }):
		return "It is not known which deployer is responsible."
	case f.isUnknown(partLeases), f.isUnknown(partDeployers):
		return "It is not known which deployers exist."
	case len(known) > 0:
		return "None of the known deployers is responsible for the item."
	case len(f.Types) > 0:
		return fmt.Sprintf("No known deployer processes items of type %s. Known types: %s.", shortenName(string(f.Item.Spec.Type)), strings.Join(f.Types, ", "))
	case f.Item.Status.Deployer.Name != "":
		return shortenName(f.Item.Status.Deployer.Name) + " processed the item before. No deployer has registered itself."
	}
	return "No deployer has registered itself. Landscaper's own deployers do not register."
}
