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

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/observe"
	"github.com/deployerkit/deployerkit/targets"
)

// UpdateStrategy determines how an existing child is changed if it differs from the desired child.
type UpdateStrategy string

const (
	// StrategyApply uses server-side apply. Only the fields that the handler returns are compared and set. A field that
	// the handler no longer returns is removed. Fields that other clients set remain. This is the default.
	StrategyApply UpdateStrategy = "Apply"
	// StrategyReplace overwrites the whole object when the handler returns an object that differs from the previous one.
	// This removes the fields that the handler does not return, except those that the API server sets. As long as the
	// handler returns the same object, fields that other clients add remain.
	StrategyReplace UpdateStrategy = "Replace"
	// StrategyRecreate deletes a child that has to change, and creates it again once it is gone.
	StrategyRecreate UpdateStrategy = "Recreate"
	// StrategyOnDelete creates a missing child but never changes an existing one. A new desired state takes effect only
	// after a user has deleted the child.
	StrategyOnDelete UpdateStrategy = "OnDelete"
)

// AnyNamespace in Options.Namespaces allows children in every namespace of the target.
const AnyNamespace = "*"

// These are defaults of Options.
const (
	DefaultMinInterval = time.Second
	// DefaultInstanceLabel is the key of the label whose value is the UID of the item.
	DefaultInstanceLabel = "app.kubernetes.io/instance"
	// DefaultManagedByLabel is the key of the label whose value is the name of the deployer.
	DefaultManagedByLabel = "app.kubernetes.io/managed-by"
)

// ChildKind is one kind of children that a handler may return.
type ChildKind struct {
	// APIVersion and Kind have the same format as in a manifest, such as "apps/v1" and "Deployment". Both are required.
	APIVersion, Kind string
	// Update selects how children of this kind are changed. Empty means [StrategyApply].
	Update UpdateStrategy
	// Adopt determines what happens if an object with the name of a child already exists and belongs to no item. Empty
	// means [apply.AdoptionNever]: such an object causes an error.
	Adopt apply.Adoption
}

// Tracking configures well-known labels that the library adds to children, for users and for other tools. The library
// itself recognizes children by another label, deployerkit.dev/item. If a user removes the labels, the library restores
// them. A handler must not set these labels to other values.
type Tracking struct {
	// InstanceLabel is the key of the label with the item's UID. Empty means [DefaultInstanceLabel].
	InstanceLabel string
	// ManagedByLabel is the key of the label with the deployer's name. Empty means [DefaultManagedByLabel].
	ManagedByLabel string
	// OwnerReference adds an owner reference to children that are in the same cluster and namespace as the item. The
	// reference makes the item the controller of these children.
	OwnerReference bool
}

// Options configures a declarative deployer. Only Children is required.
type Options struct {
	// Name is the name of the deployer. It is used in the managed-by label, in errors and in metrics. Args sets it.
	// Empty means "declarative".
	Name string
	// Children are the kinds that the handler may return. Returning a child of another kind is an error. A request
	// contains all objects of these kinds that belong to the item. Each change of such an object triggers another call
	// of Sync.
	Children []ChildKind
	// Namespaces are the namespaces of the target that may contain children. If the list is empty, only the default
	// namespace of the item is allowed. This is the namespace of the target that has the same name as the item's own
	// namespace. [AnyNamespace] allows all namespaces. A child without a namespace is created in the item's default
	// namespace if this namespace is allowed, and otherwise in the first namespace of the list. The list does not
	// restrict cluster-scoped kinds: they are allowed if Children lists them.
	Namespaces []string
	// Labels are added to each child. If the handler sets a label with the same key, the label of the handler takes
	// precedence. Labels may be nil.
	Labels map[string]string
	// Tracking configures well-known labels of children. If it is nil, none are added.
	Tracking *Tracking
	// Resync is the interval at which Sync is called for each item even if nothing changes. Zero disables these calls. A
	// positive value of less than one second is raised to one second.
	Resync time.Duration
	// MinInterval is the minimum time between two calls of Sync for one item if the second call is triggered by a
	// changed child. Zero means one second. Args also sets deployerlib.DeployerArgs.MinInterval to this value.
	MinInterval time.Duration
	// Concurrency is the maximum number of children of one item that are written at the same time. Zero means one. The
	// writes start with CustomResourceDefinitions, followed by namespaces, other cluster-scoped children, and
	// namespaced children. Within each of these groups, they start in the order in which the handler returns the
	// children.
	Concurrency int
	// OrphanChildren leaves the children in the target when an item is deleted, and in the old cluster when an item
	// moves to another cluster. If OrphanChildren is false, the children are deleted before the item.
	OrphanChildren bool
	// ItemMetrics exports the number of errors of each item as a metric. There is one time series for each item. It is
	// removed when the item is deleted. If ItemMetrics is false, errors are counted but not exported.
	ItemMetrics bool
	// Scheme determines apiVersion and kind of typed children whose TypeMeta is empty. If it is nil, the scheme of the
	// built-in kinds is used.
	Scheme *runtime.Scheme
	// Targets is the policy that restricts the kubeconfigs in Targets. The zero value is the strictest policy.
	Targets targets.Policy
	// TargetLimits limits the resources that the clients of targets use. The zero value means the defaults.
	TargetLimits targets.Limits
	// CleanUpFirst determines the order if an item moves to another cluster. If it is true, the objects in the old
	// cluster are deleted before the item is deployed to the new cluster. Otherwise they are deleted afterwards. It has
	// no effect if OrphanChildren is true.
	CleanUpFirst bool
	// Fights determines after how many repeated changes by another client the deployer delays its corrections, and for
	// how long. The zero value means the defaults.
	Fights observe.FightOptions
	// WrapTransport wraps the transport of all requests to targets, for measurements and tests. It may be nil.
	WrapTransport func(http.RoundTripper) http.RoundTripper
}

// Default replaces zero values with their defaults.
func (o *Options) Default() {
	o.Name = cmp.Or(o.Name, "declarative")
	o.MinInterval = cmp.Or(o.MinInterval, DefaultMinInterval)
	o.Concurrency = cmp.Or(o.Concurrency, 1)
	o.Children = slices.Clone(o.Children)
	for i := range o.Children {
		o.Children[i].Update = cmp.Or(o.Children[i].Update, StrategyApply)
	}
	if o.Tracking != nil {
		tracking := *o.Tracking
		tracking.InstanceLabel = cmp.Or(tracking.InstanceLabel, DefaultInstanceLabel)
		tracking.ManagedByLabel = cmp.Or(tracking.ManagedByLabel, DefaultManagedByLabel)
		o.Tracking = &tracking
	}
}

// Validate returns an error that lists all invalid options. Call Default first.
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
			fault("Tracking.OwnerReference", "cannot be combined with OrphanChildren: the owner reference would delete the children together with the item")
		}
		if t.InstanceLabel == t.ManagedByLabel {
			fault("Tracking.ManagedByLabel", "must differ from InstanceLabel")
		}
	}
	for path, negative := range map[string]bool{"Resync": o.Resync < 0, "MinInterval": o.MinInterval < 0, "Concurrency": o.Concurrency < 0} {
		if negative {
			fault(path, "must not be negative")
		}
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
			fault(path+".APIVersion", "%q is not an apiVersion", child.APIVersion)
		}
		if child.Kind == "" {
			fault(path+".Kind", "is required")
		}
		if !slices.Contains([]UpdateStrategy{StrategyApply, StrategyReplace, StrategyRecreate, StrategyOnDelete}, child.Update) {
			fault(path+".Update", "%q is not one of Apply, Replace, Recreate, OnDelete", child.Update)
		}
		if child.Adopt != "" && !slices.Contains(apply.AllAdoptions(), child.Adopt) {
			fault(path+".Adopt", "%q is not one of %q", child.Adopt, apply.AllAdoptions())
		}
		kind := schema.FromAPIVersionAndKind(child.APIVersion, child.Kind).GroupKind()
		if seen[kind] {
			fault(path, "%s is listed more than once", kind)
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
			fault(path, "%q is not a valid namespace name", namespace)
		case slices.Index(o.Namespaces, namespace) < i:
			fault(path, "%q is listed more than once", namespace)
		}
	}
}

// checkLabel calls the function `fault` if the API server would reject a label or if the label is reserved for the
// library.
func checkLabel(fault func(path, format string, args ...any), path, key, value string) {
	faults := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...)
	if len(faults) > 0 {
		fault(path, "%s", strings.Join(faults, ", "))
	}
	if ownership.IsReserved(key) {
		fault(path, "labels with the prefix %s are reserved for the library", ownership.Prefix)
	}
}

// getNamespaces returns the namespaces that may contain children of an item. The result may contain [AnyNamespace].
func (o *Options) getNamespaces(item *lsv1alpha1.DeployItem) []string {
	if len(o.Namespaces) == 0 {
		return []string{item.Namespace}
	}
	return o.Namespaces
}

// findKind returns the configured kind of a child. If the kind is not configured, it returns an error that lists the
// configured kinds.
func (o *Options) findKind(gvk schema.GroupVersionKind) (ChildKind, error) {
	names := []string{}
	for _, kind := range o.Children {
		configured := schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind)
		if configured == gvk {
			return kind, nil
		}
		names = append(names, kind.APIVersion+" "+kind.Kind)
	}
	return ChildKind{}, fmt.Errorf("%s %s is not a configured kind; Options.Children lists %s", gvk.GroupVersion(), gvk.Kind, strings.Join(names, ", "))
}
