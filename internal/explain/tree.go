// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
)

// These constants are the limits of a tree, and the kinds of Landscaper's objects.
const (
	maxTreeNodes  = 2000
	maxChildren   = 500
	maxTreeDepth  = 20
	kindInst      = "Installation"
	kindExecution = "Execution"
	kindItem      = "DeployItem"
	kindRelease   = "HelmRelease"
)

// Tree contains an Installation, an Execution, a deploy item or a whole namespace, with all objects that belong to it.
type Tree struct {
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"`
	Time       metav1.Time `json:"time"`
	Roots      []*TreeNode `json:"roots"`
	// Omitted is the number of nodes that are missing because there are too many.
	Omitted int `json:"omitted,omitempty"`
	// Unknown lists the parts that could not be read.
	Unknown []Unknown `json:"unknown,omitempty"`
}

// TreeNode is one object of a tree.
type TreeNode struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Cluster is the cluster that contains the object: landscaper or target.
	Cluster string `json:"cluster"`
	// Phase is the phase of a Landscaper object. For any other object, it is the readiness.
	Phase    string       `json:"phase,omitempty"`
	Created  *metav1.Time `json:"created,omitempty"`
	Message  string       `json:"message,omitempty"`
	Failed   bool         `json:"failed,omitempty"`
	Children []*TreeNode  `json:"children,omitempty"`
}

// TreeOptions configures ReadTree.
type TreeOptions struct {
	// Namespace is the namespace of all objects. Name is the name of an Installation, an Execution or a deploy item. If
	// Name is empty, the tree shows the whole namespace.
	Namespace, Name string
	// Open returns a client for the Target of an item, with the rights of the caller. If the returned function close is
	// not nil, ReadTree calls it. If Open is nil, ReadTree does not read the objects in target clusters. The tree then
	// contains only what the status of the items says about them.
	Open func(ctx context.Context, target *lsv1alpha1.Target) (c client.Reader, close func(), err error)
	// Clock returns the current time. The default is the real clock.
	Clock clock.PassiveClock
}

// ReadTree reads a tree with the rights of the client. Tree.Unknown contains the errors of reads that failed. ReadTree
// returns an error if the named object does not exist or cannot be read, or if the namespace cannot be listed.
func ReadTree(ctx context.Context, c client.Reader, o TreeOptions) (*Tree, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	r := &treeReader{c: c, o: o, tree: &Tree{APIVersion: APIVersion, Kind: KindTree, Time: metav1.NewTime(o.Clock.Now().UTC())}}
	var err error
	if o.Name == "" {
		err = r.readAll(ctx)
	} else {
		err = r.readNamed(ctx)
	}
	if err != nil {
		return nil, err
	}
	return r.tree, nil
}

// ReadItemTree reads the tree of the deploy item that the options name, even if an Installation has the same name.
func ReadItemTree(ctx context.Context, c client.Reader, o TreeOptions) (*Tree, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	key := types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
	var di lsv1alpha1.DeployItem
	if err := c.Get(ctx, key, &di); err != nil {
		return nil, fmt.Errorf("get DeployItem %s: %w", key, err)
	}
	r := &treeReader{c: c, o: o, tree: &Tree{APIVersion: APIVersion, Kind: KindTree, Time: metav1.NewTime(o.Clock.Now().UTC())}}
	r.addRoot(r.readItem(ctx, &di))
	return r.tree, nil
}

// treeReader builds one tree.
type treeReader struct {
	c     client.Reader
	o     TreeOptions
	tree  *Tree
	nodes int
}

// readAll builds the tree of the whole namespace. The roots are the Installations that are not part of another
// Installation, and the items that are not part of an Execution.
func (r *treeReader) readAll(ctx context.Context) error {
	var installations lsv1alpha1.InstallationList
	if err := r.list(ctx, kindInst, &installations, ""); err != nil {
		return err
	}
	for i := range installations.Items {
		if inst := &installations.Items[i]; inst.Labels[lsv1alpha1.EncompassedByLabel] == "" {
			r.addRoot(r.readInstallation(ctx, inst, 0))
		}
	}
	var items lsv1alpha1.DeployItemList
	if err := r.list(ctx, kindItem, &items, ""); err != nil {
		return err
	}
	for i := range items.Items {
		if di := &items.Items[i]; di.Labels[lsv1alpha1.ExecutionManagedByLabel] == "" {
			r.addRoot(r.readItem(ctx, di))
		}
	}
	return nil
}

// readNamed builds the tree of the object that the options name. The name may be that of an Installation, an Execution
// or a deploy item. The kinds are tried in this order.
func (r *treeReader) readNamed(ctx context.Context) error {
	key := types.NamespacedName{Namespace: r.o.Namespace, Name: r.o.Name}
	var inst lsv1alpha1.Installation
	var exec lsv1alpha1.Execution
	var di lsv1alpha1.DeployItem
	var faults []error
	for _, try := range []struct {
		kind string
		into client.Object
		node func() *TreeNode
	}{
		{kindInst, &inst, func() *TreeNode { return r.readInstallation(ctx, &inst, 0) }},
		{kindExecution, &exec, func() *TreeNode { return r.readExecution(ctx, &exec) }},
		{kindItem, &di, func() *TreeNode { return r.readItem(ctx, &di) }},
	} {
		err := r.c.Get(ctx, key, try.into)
		if err == nil {
			r.addRoot(try.node())
			return nil
		}
		if !apierrors.IsNotFound(err) {
			faults = append(faults, fmt.Errorf("get %s %s: %w", try.kind, key, err))
		}
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	return fmt.Errorf("there is no Installation, Execution or DeployItem %s", key)
}

// list reads the objects of a kind in the namespace. If `label` is not empty, it reads only objects whose label has the
// given value. If there are more than maxChildren objects, the list is incomplete, and Tree.Unknown reports this.
func (r *treeReader) list(ctx context.Context, kind string, into client.ObjectList, label string, value ...string) error {
	options := []client.ListOption{client.InNamespace(r.o.Namespace), client.Limit(maxChildren)}
	if label != "" {
		options = append(options, client.MatchingLabels{label: value[0]})
	}
	if err := r.c.List(ctx, into, options...); err != nil {
		return fmt.Errorf("list %ss in namespace %s: %w", kind, r.o.Namespace, err)
	}
	if into.GetContinue() != "" {
		r.recordUnknown(kind+"s", fmt.Errorf("there are more than %d %ss; the tree does not show all of them", maxChildren, kind))
	}
	return nil
}

func (r *treeReader) recordUnknown(part string, err error) {
	r.tree.Unknown = append(r.tree.Unknown, Unknown{Part: part, Why: shortenText(err.Error())})
}

func (r *treeReader) addRoot(n *TreeNode) {
	if n != nil {
		r.tree.Roots = append(r.tree.Roots, n)
	}
}

// newNode returns a new node, or nil if the tree already has the maximum number of nodes.
func (r *treeReader) newNode(kind, cluster string, obj metav1.Object) *TreeNode {
	if r.nodes++; r.nodes > maxTreeNodes {
		r.tree.Omitted++
		return nil
	}
	created := obj.GetCreationTimestamp()
	return &TreeNode{Kind: shortenName(kind), Namespace: shortenName(obj.GetNamespace()), Name: shortenName(obj.GetName()), Cluster: cluster, Created: toUTC(&created)}
}

func (n *TreeNode) add(child *TreeNode) {
	if child != nil {
		n.Children = append(n.Children, child)
	}
}

// setStatus sets the phase and the message in the node of a Landscaper object.
func (n *TreeNode) setStatus(phase string, e *lsv1alpha1.Error) {
	n.Phase = shortenName(phase)
	n.Failed = phase == lsv1alpha1.PhaseStringFailed || phase == lsv1alpha1.PhaseStringDeleteFailed
	if e != nil {
		n.Message = shortenText(e.Message)
	}
}

func (r *treeReader) readInstallation(ctx context.Context, inst *lsv1alpha1.Installation, depth int) *TreeNode {
	n := r.newNode(kindInst, clusterLandscaper, inst)
	if n == nil || depth > maxTreeDepth {
		return n
	}
	n.setStatus(string(inst.Status.InstallationPhase), inst.Status.LastError)
	var subs lsv1alpha1.InstallationList
	if err := r.list(ctx, kindInst, &subs, lsv1alpha1.EncompassedByLabel, inst.Name); err != nil {
		r.recordUnknown("sub-installations of "+inst.Name, err)
	}
	for i := range subs.Items {
		n.add(r.readInstallation(ctx, &subs.Items[i], depth+1))
	}
	if ref := inst.Status.ExecutionReference; ref != nil {
		var exec lsv1alpha1.Execution
		err := r.c.Get(ctx, types.NamespacedName{Namespace: r.o.Namespace, Name: ref.Name}, &exec)
		switch {
		case err == nil:
			n.add(r.readExecution(ctx, &exec))
		case !apierrors.IsNotFound(err):
			r.recordUnknown(kindExecution+" "+ref.Name, err)
		}
	}
	return n
}

func (r *treeReader) readExecution(ctx context.Context, exec *lsv1alpha1.Execution) *TreeNode {
	n := r.newNode(kindExecution, clusterLandscaper, exec)
	if n == nil {
		return nil
	}
	n.setStatus(string(exec.Status.ExecutionPhase), exec.Status.LastError)
	var items lsv1alpha1.DeployItemList
	if err := r.list(ctx, kindItem, &items, lsv1alpha1.ExecutionManagedByLabel, exec.Name); err != nil {
		r.recordUnknown("deploy items of "+exec.Name, err)
	}
	for i := range items.Items {
		n.add(r.readItem(ctx, &items.Items[i]))
	}
	return n
}

func (r *treeReader) readItem(ctx context.Context, di *lsv1alpha1.DeployItem) *TreeNode {
	n := r.newNode(kindItem, clusterLandscaper, di)
	if n == nil {
		return nil
	}
	n.setStatus(string(di.Status.Phase), di.Status.LastError)
	if c := contract.GetCondition(di.Status.Conditions, contract.ConditionWaiting); n.Message == "" && c != nil && c.Status == lsv1alpha1.ConditionTrue {
		n.Message = shortenText(c.Message)
	}
	f := &Facts{Item: di}
	provider := f.readProviderStatus()
	n.add(r.toReleaseNode(provider.release))
	objects := provider.objects
	if objects == nil {
		return n
	}
	live, done := r.openTarget(ctx, di)
	defer done()
	for _, o := range objects.Listed {
		n.add(r.readObject(ctx, live, o))
	}
	r.tree.Omitted += objects.Omitted
	return n
}

// toReleaseNode returns the node of a Helm release, or nil if there is no release record.
func (r *treeReader) toReleaseNode(release *Release) *TreeNode {
	if release == nil || release.Revision == 0 {
		return nil
	}
	n := r.newNode(kindRelease, clusterTarget, &metav1.ObjectMeta{Namespace: release.Namespace, Name: release.Name})
	if n != nil {
		n.Phase, n.Message, n.Failed = release.Status, release.String(), release.Failure != ""
	}
	return n
}

// openTarget returns a client for the Target of an item, or nil if there is none. The caller must call `done` in both
// cases.
func (r *treeReader) openTarget(ctx context.Context, di *lsv1alpha1.DeployItem) (live client.Reader, done func()) {
	done = func() {}
	if r.o.Open == nil || di.Spec.Target == nil {
		return nil, done
	}
	var target lsv1alpha1.Target
	err := r.c.Get(ctx, types.NamespacedName{Namespace: di.Namespace, Name: di.Spec.Target.Name}, &target)
	if err == nil {
		var end func()
		if live, end, err = r.o.Open(ctx, &target); end != nil {
			done = end
		}
	}
	if err != nil {
		r.recordUnknown("target "+di.Spec.Target.Name+" of "+di.Name, err)
		return nil, done
	}
	return live, done
}

// getAge returns the age of the object as text.
func (n *TreeNode) getAge(now time.Time) string {
	if n.Created == nil {
		return ""
	}
	return formatDuration(now.Sub(n.Created.Time))
}
