// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/absence"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/observe"
)

// foundObjects contains the objects that a Reference has found, and the watch that reports changes of these objects.
type foundObjects struct {
	search       string // the search as text
	objects      []*unstructured.Unstructured
	subscription *observe.Subscription
}

// Find returns the objects that match `wanted`. If a watch shows that nothing has changed since the last run, Find
// returns the objects of the last run without a request.
func (t *Session) Find(ctx context.Context, component string, wanted Search) ([]*unstructured.Unstructured, error) {
	if wanted.Landscaper {
		wanted.Namespace = t.run.Item.Namespace
	}
	before := t.memory.getFound(component)
	if before != nil && before.search == wanted.String() && before.subscription.IsCurrent() {
		return before.objects, nil
	}
	from, request, err := t.resolveSearch(wanted)
	if err != nil {
		return nil, err
	}
	now := &foundObjects{search: wanted.String()}
	now.subscription = request.Subscribe(func() { t.memory.handleReferenceChange(component) })
	if now.objects, err = findObjects(ctx, from, wanted); err != nil {
		now.subscription.Stop()
		return nil, err
	}
	now.subscription.SetBaseline(now.objects)
	t.memory.setFound(component, now)
	return now.objects, nil
}

// resolveSearch returns a client for reading the objects that match `wanted`, and a request, which selects these
// objects for a watch. It returns an error if the cluster does not know the kind.
func (t *Session) resolveSearch(wanted Search) (from client.Reader, request observe.WatchRequest, err error) {
	var mapper meta.RESTMapper
	var watcher *observe.Watcher
	switch {
	case wanted.Landscaper:
		landscaper, err := t.run.Manager.OpenLandscaper()
		if err != nil {
			return nil, request, err
		}
		from, mapper, watcher = landscaper, t.run.Manager.GetRuntime().Landscaper.GetRESTMapper(), landscaper.Watcher()
	case t.run.Cluster == nil:
		return nil, request, errNoTarget()
	default:
		from, mapper, watcher = t.run.Cluster.Client, t.run.Cluster.RESTMapper(), t.run.Cluster.Watcher()
	}
	mapping, err := mapper.RESTMapping(wanted.Kind.GroupKind(), wanted.Kind.Version)
	if err != nil {
		return nil, request, convertNotServed(wanted, err)
	}
	if wanted.Name == "" {
		return from, watcher.ForLabels(mapping.Resource, wanted.Labels, nil).InNamespace(wanted.Namespace), nil
	}
	return from, watcher.ForObject(mapping.Resource, wanted.Ref().Key(), nil), nil
}

// notServedRetryAfter is the time after which a Reference looks again for a kind that the cluster does not serve.
const notServedRetryAfter = 5 * time.Second

// convertNotServed converts the error of a search. If the cluster does not serve the kind at the moment, the result is
// a [deployerlib.WaitFor].
func convertNotServed(wanted Search, err error) error {
	if absence.ClassifyError(absence.Object{Kind: wanted.Kind.GroupKind(), Name: wanted.Name}, err) == absence.MeaningNotServed {
		return deployerlib.WaitFor(contract.OneLine(apply.DescribeUnserved(wanted.Kind, err), maxReason), notServedRetryAfter)
	}
	return fmt.Errorf("find the resource of %s: %w", wanted.Kind.GroupKind(), err)
}

// maxReason is the maximum length of a reason.
const maxReason = 1024

// findObjects reads the objects that match `wanted`.
func findObjects(ctx context.Context, from client.Reader, wanted Search) ([]*unstructured.Unstructured, error) {
	if wanted.Name != "" {
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(wanted.Kind)
		err := from.Get(ctx, wanted.Ref().Key(), obj)
		absent := absence.ClassifyError(absence.Object{Kind: wanted.Kind.GroupKind(), Name: wanted.Name}, err)
		switch {
		case absent.IsProved():
			return nil, nil
		case absent == absence.MeaningNotServed:
			return nil, convertNotServed(wanted, err)
		case err != nil:
			return nil, fmt.Errorf("read %s: %w", wanted, err)
		}
		return []*unstructured.Unstructured{obj}, nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(wanted.Kind.GroupVersion().WithKind(wanted.Kind.Kind + "List"))
	err := from.List(ctx, list, client.InNamespace(wanted.Namespace), client.MatchingLabels(wanted.Labels), client.Limit(MaxReferenced+1))
	switch {
	case absence.CanMeanNotServed(err):
		return nil, convertNotServed(wanted, err)
	case err != nil:
		return nil, fmt.Errorf("list %s: %w", wanted, err)
	case len(list.Items) > MaxReferenced:
		return nil, fmt.Errorf("%s: there are more than %d objects", wanted, MaxReferenced)
	}
	objects := make([]*unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		objects[i] = &list.Items[i]
	}
	return objects, nil
}

// CheckReadiness returns the reason why an object is not ready by the default rules, or "" if it is ready.
func (t *Session) CheckReadiness(ctx context.Context, live *unstructured.Unstructured) (reason string, err error) {
	return t.checkByDefaultRules(ctx, live)
}

// getFound returns the objects that the Reference of a component found in an earlier run, or nil if they are not known.
func (m *Memory) getFound(component string) *foundObjects {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.references[component]
}

// setFound records the objects that the Reference of a component has found.
func (m *Memory) setFound(component string, now *foundObjects) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if before := m.references[component]; before != nil {
		before.subscription.Stop()
	}
	m.references[component] = now
}

// HasReferences reports whether a Reference of the item has looked for objects.
func (m *Memory) HasReferences() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.references) > 0
}

// handleReferenceChange is called when an object of a Reference has changed. If a run is in progress and can recheck
// the component, lost requests the recheck. Otherwise, it triggers another run of the item.
func (m *Memory) handleReferenceChange(component string) {
	m.mu.Lock()
	tell, wake := m.recheckComponent, m.triggerRun
	m.mu.Unlock()
	if tell != nil && tell(component) {
		return
	}
	m.mu.Lock()
	if m.running {
		m.missedChange = true
		wake = nil
	}
	m.mu.Unlock()
	if wake != nil {
		wake()
	}
}

// OnReferenceChange sets the function that triggers a run of the item when an object of a Reference changes.
func (m *Memory) OnReferenceChange(wake func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.triggerRun = wake
}

// minReferenceInterval is the minimum time between two runs of an item that are triggered by changes of referenced
// objects.
const minReferenceInterval = time.Second

// NextReferenceRun is called when a change of a referenced object triggers a run. It returns the time at which the run
// should start, and records this time. The result is `now`, or the previously recorded time plus minReferenceInterval
// if that is later.
func (m *Memory) NextReferenceRun(now time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if earliest := m.lastReference.Add(minReferenceInterval); now.Before(earliest) {
		now = earliest
	}
	m.lastReference = now
	return now
}

// MaxReferenced is the maximum number of objects that a search by labels may find.
const MaxReferenced = 100

// Search describes the objects that a Reference looks for.
type Search struct {
	Kind            schema.GroupVersionKind
	Namespace, Name string
	Labels          map[string]string // used if Name is empty
	Landscaper      bool              // the objects are in the Landscaper cluster, in the namespace of the item
}

// String returns the search as text for messages. Two different searches never have the same text.
func (s Search) String() string {
	where := ""
	if s.Landscaper {
		where = " in the Landscaper cluster"
	}
	if s.Name != "" {
		return s.Ref().String() + where
	}
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		pairs = append(pairs, key+"="+s.Labels[key])
	}
	text := s.Kind.GroupKind().String() + " with " + strings.Join(pairs, " ")
	if s.Namespace != "" {
		where = " in namespace " + s.Namespace + where
	}
	return text + where
}

// Ref returns a reference to the object. The field Name of the search must be set.
func (s Search) Ref() apply.Ref {
	return apply.Ref{APIVersion: s.Kind.GroupVersion().String(), Kind: s.Kind.Kind, Namespace: s.Namespace, Name: s.Name}
}
