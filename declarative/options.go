// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/apply/watch"
	"github.com/deployerkit/deployerkit/targets"
)

// UpdateStrategy is how an existing child is updated to what the handler wants.
type UpdateStrategy string

const (
	// Apply uses server-side apply. Only the fields that the handler returns are compared and set. Fields that it no
	// longer returns are removed, and fields of others stay. This is the default.
	Apply UpdateStrategy = "Apply"
	// Replace sets the whole object once for each change of what the handler returns. Fields that the handler does not
	// return are removed, except those that the API server sets. As long as the handler returns the same, fields that
	// others add stay.
	Replace UpdateStrategy = "Replace"
	// Recreate deletes a child that has to change, and creates it when it is gone.
	Recreate UpdateStrategy = "Recreate"
	// OnDelete creates a missing child and never changes one. A change takes effect when a user deletes the child.
	OnDelete UpdateStrategy = "OnDelete"
)

// AnyNamespace in Options.Namespaces allows children in every namespace of the target.
const AnyNamespace = "*"

// These are defaults of Options.
const (
	DefaultMinInterval = time.Second
	// DefaultInstanceLabel is the label that holds the UID of the item.
	DefaultInstanceLabel = "app.kubernetes.io/instance"
	// DefaultManagedByLabel is the label that holds the name of the deployer.
	DefaultManagedByLabel = "app.kubernetes.io/managed-by"
)

// ChildKind is a kind of which a handler may return children.
type ChildKind struct {
	// APIVersion and Kind are as in a manifest, such as "apps/v1" and "Deployment". Both are required.
	APIVersion, Kind string
	// Update selects how children of this kind are changed. Empty means [Apply].
	Update UpdateStrategy
	// Adopt selects what is done with a child that already exists and belongs to no item. Empty means that it is an
	// error, as with [apply.AdoptNever].
	Adopt apply.Adoption
}

// Tracking puts well-known labels on each child, for people and other tools. The library itself does not need them. It
// recognizes children by its own label, deployerkit.dev/item. Like everything that is desired, the labels are put back
// when a user removes them. A handler must not set the same labels.
type Tracking struct {
	// InstanceLabel is the key of the label with the item's UID. Empty means [DefaultInstanceLabel].
	InstanceLabel string
	// ManagedByLabel is the key of the label with the deployer's name. Empty means [DefaultManagedByLabel].
	ManagedByLabel string
	// OwnerReference makes the item the controller of children in its own cluster and namespace.
	OwnerReference bool
}

// Options configures a declarative deployer. Only Children is required.
type Options struct {
	// Name is the name of the deployer in the managed-by label, errors and metrics. Args sets it. Empty means
	// "declarative".
	Name string
	// Children are the kinds that the handler may return. A request contains all objects of these kinds that belong to
	// the item, and each change of one calls Sync again. Other kinds are an error.
	Children []ChildKind
	// Namespaces are the namespaces that may contain children. Empty means only the namespace with the name of the
	// item's own. [AnyNamespace] allows all. A child without a namespace gets the item's own if that is allowed, and
	// otherwise the first of the list. Cluster-scoped kinds are not restricted. Listing them in Children allows them.
	Namespaces []string
	// Labels are put on each child, unless the handler sets a label of the same key. They may be nil.
	Labels map[string]string
	// Tracking puts well-known labels on each child. If it is nil, none are added.
	Tracking *Tracking
	// Resync is the interval at which Sync is called for each item even if nothing changes. Zero means never.
	Resync time.Duration
	// MinInterval is the shortest time between two calls of Sync for one item because of changed children. Zero means
	// one second.
	MinInterval time.Duration
	// Concurrency is how many children of an item are written at a time. Zero means one, so that children are written
	// in the order in which they are returned. With more, the writes of a stage start in that order.
	Concurrency int
	// OrphanChildren leaves the children in the target when an item is deleted. Without it they are deleted first.
	OrphanChildren bool
	// ItemMetrics counts errors per item as metrics, which are removed with the item. It creates one series per item.
	// Without it, errors are counted but not exported.
	ItemMetrics bool
	// Scheme knows the kinds of typed children that do not name theirs (an empty TypeMeta). If it is nil, the built-in
	// kinds are known.
	Scheme *runtime.Scheme
	// Targets is what the operator allows beyond the strict default.
	Targets targets.Policy
	// TargetLimits bounds the resources that targets use. The zero value means the defaults.
	TargetLimits targets.Limits
	// CleanUpFirst makes an item that moves to another cluster wait until its objects in the old one are deleted.
	// Without it, the item is deployed to the new cluster first.
	CleanUpFirst bool
	// Fights configures when repeated changes by others count as a fight, and how long the deployer then waits before
	// it corrects them. The zero value means the defaults.
	Fights watch.GuardOptions
	// WrapTransport wraps the transport to each target, for measurements and tests. It may be nil.
	WrapTransport func(http.RoundTripper) http.RoundTripper
}

// Default sets every zero value that has a default.
func (o *Options) Default() {
	o.Name = cmp.Or(o.Name, "declarative")
	o.MinInterval = cmp.Or(o.MinInterval, DefaultMinInterval)
	o.Concurrency = cmp.Or(o.Concurrency, 1)
	o.Children = slices.Clone(o.Children)
	for i := range o.Children {
		o.Children[i].Update = cmp.Or(o.Children[i].Update, Apply)
	}
	if o.Tracking != nil {
		tracking := *o.Tracking
		tracking.InstanceLabel = cmp.Or(tracking.InstanceLabel, DefaultInstanceLabel)
		tracking.ManagedByLabel = cmp.Or(tracking.ManagedByLabel, DefaultManagedByLabel)
		o.Tracking = &tracking
	}
}

// Validate reports every fault at once. Call Default first.
func (o *Options) Validate() error {
	var errs []error
	fault := func(path, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", path, fmt.Sprintf(format, args...)))
	}
	o.validateChildren(fault)
	o.validateNamespaces(fault)
	for _, key := range slices.Sorted(maps.Keys(o.Labels)) {
		checkLabel(fault, "Labels["+key+"]", key, o.Labels[key])
	}
	if t := o.Tracking; t != nil {
		checkLabel(fault, "Tracking.InstanceLabel", t.InstanceLabel, "")
		checkLabel(fault, "Tracking.ManagedByLabel", t.ManagedByLabel, o.Name)
		if t.OwnerReference && o.OrphanChildren {
			fault("Tracking.OwnerReference", "excludes OrphanChildren: the children would be deleted with the item all the same")
		}
		if t.InstanceLabel == t.ManagedByLabel {
			fault("Tracking.ManagedByLabel", "is the same as InstanceLabel")
		}
	}
	for path, value := range map[string]time.Duration{"Resync": o.Resync, "MinInterval": o.MinInterval} {
		if value < 0 {
			fault(path, "is negative")
		}
	}
	if o.Concurrency < 0 {
		fault("Concurrency", "is negative")
	}
	slices.SortFunc(errs, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

func (o *Options) validateChildren(fault func(path, format string, args ...any)) {
	if len(o.Children) == 0 {
		fault("Children", "at least one kind is required")
	}
	seen := map[schema.GroupKind]bool{}
	for i, child := range o.Children {
		path := fmt.Sprintf("Children[%d]", i)
		if version, err := schema.ParseGroupVersion(child.APIVersion); err != nil || version.Version == "" {
			fault(path+".APIVersion", "%q is none", child.APIVersion)
		}
		if child.Kind == "" {
			fault(path+".Kind", "is required")
		}
		if !slices.Contains([]UpdateStrategy{Apply, Replace, Recreate, OnDelete}, child.Update) {
			fault(path+".Update", "%q is none of Apply, Replace, Recreate, OnDelete", child.Update)
		}
		if child.Adopt != "" && !slices.Contains(apply.Adoptions(), child.Adopt) {
			fault(path+".Adopt", "%q is none of %q", child.Adopt, apply.Adoptions())
		}
		kind := schema.FromAPIVersionAndKind(child.APIVersion, child.Kind).GroupKind()
		if seen[kind] {
			fault(path, "%s is there twice", kind)
		}
		seen[kind] = true
	}
}

func (o *Options) validateNamespaces(fault func(path, format string, args ...any)) {
	for i, namespace := range o.Namespaces {
		path := fmt.Sprintf("Namespaces[%d]", i)
		switch {
		case namespace == AnyNamespace:
		case len(validation.IsDNS1123Label(namespace)) > 0:
			fault(path, "%q is no name of a namespace", namespace)
		case slices.Index(o.Namespaces, namespace) < i:
			fault(path, "%q is there twice", namespace)
		}
	}
}

// checkLabel refuses labels that the API server would refuse or that are reserved for the library.
func checkLabel(fault func(path, format string, args ...any), path, key, value string) {
	faults := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...)
	if len(faults) > 0 {
		fault(path, "%s", strings.Join(faults, ", "))
	}
	if ownership.IsReserved(key) {
		fault(path, "labels with %s are the library's own", ownership.Prefix)
	}
}

// kindOf returns the configured kind of a child. Its error lists the configured kinds.
func (o *Options) kindOf(gvk schema.GroupVersionKind) (ChildKind, error) {
	names := []string{}
	for _, kind := range o.Children {
		configured := schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind)
		if configured == gvk {
			return kind, nil
		}
		names = append(names, kind.APIVersion+" "+kind.Kind)
	}
	return ChildKind{}, fmt.Errorf("%s %s is not a configured kind, Options.Children has %s", gvk.GroupVersion(), gvk.Kind, strings.Join(names, ", "))
}
