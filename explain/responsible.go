// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"
)

// responsible explains which deployer processes the item.
func (f *Facts) responsible() Responsible {
	var out Responsible
	if d := f.Item.Status.Deployer; d.Name != "" || d.Identity != "" {
		out.Deployer = &Deployer{Name: word(d.Name), Identity: word(d.Identity), Version: word(d.Version)}
	}
	if ref := f.Item.Spec.Target; ref != nil {
		out.Target = &Target{Name: word(ref.Name), State: "unknown"}
		switch {
		case f.TargetMissing:
			out.Target.State = "missing"
		case f.Target != nil:
			out.Target.State, out.Target.Type = "found", word(string(f.Target.Spec.Type))
		}
	}
	for i := range f.Deployers[:min(len(f.Deployers), maxRegistrations)] {
		out.Registrations = append(out.Registrations, f.registration(&f.Deployers[i]))
	}
	rank := map[string]int{yes: 0, undecided: 1, no: 2}
	slices.SortStableFunc(out.Registrations, func(a, b Registration) int {
		return cmp.Or(cmp.Compare(rank[a.Responsible], rank[b.Responsible]), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Source, b.Source))
	})
	out.Summary = f.summary(out.Registrations)
	return out
}

// registration describes a known deployer, and whether the deployer is responsible for the item.
func (f *Facts) registration(d *KnownDeployer) Registration {
	r := Registration{Source: word(d.Source), Name: word(d.Name), Working: true}
	r.Responsible, r.Why = judge(d, f)
	if d.Partial && r.Responsible == yes {
		r.Responsible, r.Why = undecided, "the selectors of the deployer are too long for its registration"
	}
	if l := d.Lease; l != nil {
		r.Holder, r.Renewed = word(l.Holder), timeAt(l.Renewed)
		r.Working = l.Holder != "" && f.Now.Sub(l.Renewed) <= l.Duration
	}
	return r
}

// summary returns a sentence about the responsible deployer.
func (f *Facts) summary(known []Registration) string {
	responsible := slices.DeleteFunc(slices.Clone(known), func(r Registration) bool { return r.Responsible != yes })
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
	case slices.ContainsFunc(known, func(r Registration) bool { return r.Responsible == undecided }):
		return "It is not known which deployer is responsible."
	case len(known) > 0:
		return "None of the known deployers is responsible for the item."
	case f.isUnknown(partLeases):
		return "It is not known which deployers exist."
	case f.Item.Status.Deployer.Name != "":
		return word(f.Item.Status.Deployer.Name) + " processed the item before. No deployer has registered itself."
	}
	return "No deployer has registered itself. Deployers without leader election and Landscaper's own deployers do not register."
}
