// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/deployermain/registration"
	"github.com/deployerkit/deployerkit/history"
)

// Options configures Gather.
type Options struct {
	// Host reads from the cluster that contains the deployers and their leases. The default is the cluster of the deploy
	// items.
	Host client.Reader
	// History returns the last reconciles of an item. It may be nil.
	History func(ctx context.Context, item types.NamespacedName) ([]history.Reconcile, error)
	// Clock returns the current time. The default is the real clock.
	Clock clock.PassiveClock
}

// ReadFacts reads everything that is known about a deploy item, with the rights of the client. It returns an error only
// if the deploy item itself cannot be read. Facts.Unknown contains the errors of all other reads.
func ReadFacts(ctx context.Context, c client.Reader, key types.NamespacedName, o Options) (Facts, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Host == nil {
		o.Host = c
	}
	f := Facts{Item: &lsv1alpha1.DeployItem{}}
	if err := c.Get(ctx, key, f.Item); err != nil {
		return f, fmt.Errorf("get DeployItem %s: %w", key, err)
	}
	f.readTarget(ctx, c)
	f.readContext(ctx, c)
	f.readLeases(ctx, o.Host)
	f.readRegistrations(ctx, c)
	f.readEvents(ctx, c)
	if o.History != nil {
		var err error
		if f.History, err = o.History(ctx, key); err != nil {
			f.recordUnknown(partHistory, err)
		}
	}
	f.Now = o.Clock.Now()
	return f, nil
}

// recordUnknown records that a part of the facts could not be read.
func (f *Facts) recordUnknown(part string, err error) {
	why := err.Error()
	if apierrors.IsForbidden(err) {
		why = "you lack the right: " + why
	}
	f.Unknown = append(f.Unknown, Unknown{Part: part, Why: shortenText(why)})
}

func (f *Facts) readTarget(ctx context.Context, c client.Reader) {
	ref := f.Item.Spec.Target
	if ref == nil {
		return
	}
	target := &lsv1alpha1.Target{}
	err := c.Get(ctx, types.NamespacedName{Namespace: f.Item.Namespace, Name: ref.Name}, target)
	switch {
	case err == nil:
		target.Spec.Configuration = nil // the configuration may contain a kubeconfig, which is not needed here
		f.Target = target
	case apierrors.IsNotFound(err):
		f.TargetMissing = true
	default:
		f.recordUnknown(partTarget, err)
	}
}

func (f *Facts) readContext(ctx context.Context, c client.Reader) {
	key := types.NamespacedName{Namespace: f.Item.Namespace, Name: contextName(f.Item.Spec.Context)}
	err := c.Get(ctx, key, &lsv1alpha1.Context{})
	switch {
	case err == nil:
	case apierrors.IsNotFound(err):
		f.ContextMissing = true
	default:
		f.recordUnknown(partContext, err)
	}
}

// readLeases finds the deployers that have written a registration to their leases.
func (f *Facts) readLeases(ctx context.Context, c client.Reader) {
	next := ""
	for range maxPages {
		var leases coordinationv1.LeaseList
		if err := c.List(ctx, &leases, client.HasLabels{registration.Label}, client.Limit(maxPage), client.Continue(next)); err != nil {
			f.recordUnknown(partLeases, err)
			return
		}
		for i := range leases.Items {
			f.readLease(&leases.Items[i])
		}
		f.limitDeployers(maxKnown)
		if next = leases.Continue; next == "" {
			return
		}
	}
	f.recordUnknown(partLeases, fmt.Errorf("there are too many leases of deployers; only %d were read", maxPages*maxPage))
}

// readLease reads the registration of a deployer.
func (f *Facts) readLease(l *coordinationv1.Lease) {
	r, err := decodeRegistered(l.Annotations[registration.Annotation])
	switch {
	case err != nil:
	case r.Type == string(f.Item.Spec.Type) || r.Name == f.Item.Status.Deployer.Name:
		f.Deployers = append(f.Deployers, KnownDeployer{
			Source: "Lease " + l.Namespace + "/" + l.Name, LeaseNamespace: l.Namespace, Created: l.CreationTimestamp.Time, Registered: r, Lease: toLease(l),
		})
	case r.Type != "" && len(f.Types) < maxTypes && !slices.Contains(f.Types, shortenName(r.Type)):
		f.Types = append(f.Types, shortenName(r.Type))
	}
}

func toLease(l *coordinationv1.Lease) *Lease {
	out := &Lease{}
	if l.Spec.HolderIdentity != nil {
		out.Holder = *l.Spec.HolderIdentity
	}
	if l.Spec.RenewTime != nil {
		out.Renewed = l.Spec.RenewTime.Time
	}
	if l.Spec.LeaseDurationSeconds != nil {
		out.Duration = time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second
	}
	return out
}

// readRegistrations reads the DeployerRegistrations. Only some versions of Landscaper have this kind.
func (f *Facts) readRegistrations(ctx context.Context, c client.Reader) {
	next := ""
	for range maxPages {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(lsv1alpha1.SchemeGroupVersion.WithKind("DeployerRegistrationList"))
		err := c.List(ctx, list, client.Limit(maxPage), client.Continue(next))
		switch {
		case meta.IsNoMatchError(err), next == "" && apierrors.IsNotFound(err):
			return
		case err != nil:
			f.recordUnknown(partDeployers, err)
			return
		}
		f.addRegistrations(list)
		f.limitDeployers(maxKnown)
		if next = list.GetContinue(); next == "" {
			return
		}
	}
	f.recordUnknown(partDeployers, fmt.Errorf("there are too many DeployerRegistrations; only %d were read", maxPages*maxPage))
}

// addRegistrations adds the deployers whose DeployerRegistrations contain the type of the item.
func (f *Facts) addRegistrations(list *unstructured.UnstructuredList) {
	for i := range list.Items {
		kinds, _, _ := unstructured.NestedStringSlice(list.Items[i].Object, "spec", "types")
		if !slices.Contains(kinds, string(f.Item.Spec.Type)) {
			continue
		}
		name := list.Items[i].GetName()
		f.Deployers = append(f.Deployers, KnownDeployer{
			Source: "DeployerRegistration " + name, Created: list.Items[i].GetCreationTimestamp().Time, Registered: Registered{Name: name, Type: string(f.Item.Spec.Type)},
		})
	}
}

// readEvents finds the events about the item.
func (f *Facts) readEvents(ctx context.Context, c client.Reader) {
	var events corev1.EventList
	selector := fields.AndSelectors(fields.OneTermEqualSelector("involvedObject.name", f.Item.Name), fields.OneTermEqualSelector("involvedObject.kind", "DeployItem"))
	err := c.List(ctx, &events, client.InNamespace(f.Item.Namespace), client.MatchingFieldsSelector{Selector: selector}, client.Limit(maxEvents))
	if err != nil {
		f.recordUnknown(partEvents, err)
		return
	}
	for i := range events.Items {
		e := &events.Items[i]
		if f.Item.UID != "" && e.InvolvedObject.UID != "" && e.InvolvedObject.UID != f.Item.UID {
			continue // the event is about a former item with the same name
		}
		at := e.LastTimestamp.Time
		if at.IsZero() {
			at = e.EventTime.Time
		}
		f.Events = append(f.Events, Event{Reason: shortenName(e.Reason), Message: shortenText(e.Message), At: at})
	}
	slices.SortStableFunc(f.Events, func(a, b Event) int { return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Message, b.Message)) })
}

// IsMissing reports whether an error of Gather or ReadTree means that the object does not exist.
func IsMissing(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && apierrors.IsNotFound(err)
}
