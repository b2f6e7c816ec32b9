// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"context"
	"net"
	"strconv"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployermain/registration"
)

// newRegistration returns the registration that the lease of the deployer contains.
func (o *Options) newRegistration(args *deployerlib.DeployerArgs) registration.Registration {
	r := registration.Registration{
		Name: args.Name, Identity: args.Identity, Version: args.Version, Type: string(args.Type), TargetSelectors: args.TargetSelectors, Namespace: o.Namespace,
	}
	if args.Shard.Count > 1 {
		r.Shard, r.Shards = args.Shard.Index, args.Shard.Count
	}
	if args.ItemSelector != nil {
		r.ItemSelector = args.ItemSelector.String()
	}
	if _, port, err := net.SplitHostPort(o.HistoryBindAddress); err == nil {
		r.HistoryPort, _ = strconv.Atoi(port) // a port with a name cannot be forwarded
	}
	return r
}

// registrar adds the registration of the deployer to each lease that it writes.
type registrar struct {
	coordinationv1client.LeasesGetter

	value string
}

// Leases implements LeasesGetter.
func (r registrar) Leases(namespace string) coordinationv1client.LeaseInterface {
	return registeredLeases{LeaseInterface: r.LeasesGetter.Leases(namespace), value: r.value}
}

type registeredLeases struct {
	coordinationv1client.LeaseInterface

	value string
}

// Create creates a lease with the registration.
func (l registeredLeases) Create(ctx context.Context, lease *coordinationv1.Lease, o metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return l.LeaseInterface.Create(ctx, l.mark(lease), o)
}

// Update updates a lease with the registration.
func (l registeredLeases) Update(ctx context.Context, lease *coordinationv1.Lease, o metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return l.LeaseInterface.Update(ctx, l.mark(lease), o)
}

func (l registeredLeases) mark(lease *coordinationv1.Lease) *coordinationv1.Lease {
	if l.value == "" {
		return lease
	}
	lease = lease.DeepCopy()
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, registration.Annotation, l.value)
	metav1.SetMetaDataLabel(&lease.ObjectMeta, registration.Label, "true")
	return lease
}
