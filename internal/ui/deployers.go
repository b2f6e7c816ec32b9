// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployermain/registration"
)

const (
	// maxDeployers is the maximum number of deployers that the page lists.
	maxDeployers = 200
	// leaseInterval is the time between two reads of the leases.
	leaseInterval = 5 * time.Second
)

// deployer describes a deployer that has registered itself.
type deployer struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Version string `json:"version,omitempty"`
	Lease   string `json:"lease"`
	Holder  string `json:"holder,omitempty"`
	// Namespace is the only namespace whose items the deployer processes. It is empty for all namespaces.
	Namespace string `json:"namespace,omitempty"`
	// Renewed is when the holder last renewed the lease, in milliseconds since 1970. Working is false if no process holds
	// the lease or if it has expired.
	Renewed int64 `json:"renewed,omitempty"`
	Working bool  `json:"working"`
}

// deployerList is the message about the deployers.
type deployerList struct {
	Deployers []deployer `json:"deployers"`
	Problem   string     `json:"problem,omitempty"`
}

// readDeployers reads the leases with registrations.
func readDeployers(ctx context.Context, c client.Reader, clock clock.PassiveClock) deployerList {
	out := deployerList{Deployers: []deployer{}}
	var leases coordinationv1.LeaseList
	if err := c.List(ctx, &leases, client.HasLabels{registration.Label}, client.Limit(maxDeployers)); err != nil {
		out.Problem = contract.OneLine(err.Error(), 1024)
		if apierrors.IsForbidden(err) {
			out.Problem = "You lack the right to list leases, so the deployers are unknown."
		}
		return out
	}
	if leases.Continue != "" {
		out.Problem = "There are more deployers than the page lists."
	}
	for i := range leases.Items {
		if d, ok := newDeployer(&leases.Items[i], clock.Now()); ok {
			out.Deployers = append(out.Deployers, d)
		}
	}
	slices.SortFunc(out.Deployers, func(a, b deployer) int { return strings.Compare(a.Type+" "+a.Lease, b.Type+" "+b.Lease) })
	return out
}

// newDeployer reads the registration in a lease. It returns false if the lease contains none.
func newDeployer(l *coordinationv1.Lease, now time.Time) (deployer, bool) {
	var r registration.Registration
	text := l.Annotations[registration.Annotation]
	if len(text) > registration.MaxBytes || json.Unmarshal([]byte(text), &r) != nil {
		return deployer{}, false
	}
	d := deployer{
		Name: contract.OneLine(r.Name, maxRowName), Type: contract.OneLine(r.Type, maxRowName), Version: contract.OneLine(r.Version, maxRowName),
		Namespace: contract.OneLine(r.Namespace, maxRowName), Lease: contract.OneLine(l.Namespace+"/"+l.Name, 2*maxRowName),
	}
	if l.Spec.HolderIdentity != nil {
		d.Holder = contract.OneLine(*l.Spec.HolderIdentity, maxRowName)
	}
	if l.Spec.RenewTime != nil {
		d.Renewed = l.Spec.RenewTime.UnixMilli()
		if l.Spec.LeaseDurationSeconds != nil {
			d.Working = d.Holder != "" && now.Before(l.Spec.RenewTime.Add(time.Duration(*l.Spec.LeaseDurationSeconds)*time.Second))
		}
	}
	return d, true
}
