// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"context"
	"os"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/deployerkit/deployerkit/deployermain/registration"
	"github.com/deployerkit/deployerkit/internal/notfound"
)

const (
	// announcePeriod is the interval at which a deployer without leader election renews its registration.
	announcePeriod = time.Minute
	// announceTimeout limits the requests of one renewal.
	announceTimeout = 10 * time.Second
	// announcedSuffix is the suffix in the name of the lease of a deployer without leader election. The lease has another
	// name than the lease for leader election, so that it does not influence the election of other deployments.
	announcedSuffix = "-registration"
)

// announcer publishes the registration of a deployer that works without leader election. Several replicas share one
// lease, which shows the replica that renewed it last.
type announcer struct {
	leases   coordinationv1client.LeaseInterface
	name     string
	identity string
	log      logr.Logger
	clock    clock.WithTicker
}

// newAnnouncer returns an announcer. The lease contains the registration r.
func newAnnouncer(cfg *rest.Config, e Election, r registration.Registration, log logr.Logger) (*announcer, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	leases, err := coordinationv1client.NewForConfig(rest.AddUserAgent(cfg, "registration"))
	if err != nil {
		return nil, err
	}
	return &announcer{
		leases: registrar{LeasesGetter: leases, value: r.Encode()}.Leases(e.Namespace), name: e.ID + announcedSuffix,
		identity: host + "_" + string(uuid.NewUUID()), log: log.WithName("registration"), clock: clock.RealClock{},
	}, nil
}

// NeedLeaderElection returns false, because there is no election.
func (a *announcer) NeedLeaderElection() bool { return false }

// Start renews the lease until ctx is done, and then releases it. The deployer works without its registration. Start
// therefore never returns an error, and it ends if the requests are forbidden.
func (a *announcer) Start(ctx context.Context) error {
	ticker := a.clock.NewTicker(announcePeriod)
	defer ticker.Stop()
	for {
		err := a.write(ctx, a.identity)
		if err != nil {
			a.log.V(1).Info("cannot write the registration of the deployer", "lease", a.name, "error", err.Error())
		}
		if apierrors.IsForbidden(err) || notfound.IsProof(err) {
			return nil
		}
		select {
		case <-ctx.Done():
			if err := a.write(context.WithoutCancel(ctx), ""); err != nil {
				a.log.V(1).Info("cannot release the registration of the deployer", "lease", a.name, "error", err.Error())
			}
			return nil
		case <-ticker.C():
		}
	}
}

// write creates or updates the lease. If the holder is empty, write releases the lease unless another replica holds it.
func (a *announcer) write(ctx context.Context, holder string) error {
	ctx, cancel := context.WithTimeout(ctx, announceTimeout)
	defer cancel()
	lease, err := a.leases.Get(ctx, a.name, metav1.GetOptions{})
	missing := notfound.IsProof(err)
	switch {
	case missing && holder == "":
		return nil
	case missing:
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: a.name}}
	case err != nil:
		return err
	case holder == "" && (lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity != a.identity):
		return nil
	}
	now := metav1.NewMicroTime(a.clock.Now())
	lease.Spec.HolderIdentity, lease.Spec.RenewTime = &holder, &now
	lease.Spec.LeaseDurationSeconds = new(int32(3 * announcePeriod / time.Second))
	if missing {
		_, err = a.leases.Create(ctx, lease, metav1.CreateOptions{})
	} else {
		_, err = a.leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	return err
}
