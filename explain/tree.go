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

// Limits of a tree.
const (
	maxTreeNodes  = 2000
	maxChildren   = 500
	maxTreeDepth  = 20
	kindInst      = "Installation"
	kindExecution = "Execution"
	kindItem      = "DeployItem"
)

// Tree is an Installation, an Execution or a deploy item with everything that belongs to it.
type Tree struct {
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"`
	Time       metav1.Time `json:"time"`
	Roots      []*TreeNode `json:"roots"`
	// Omitted is the number of nodes that were omitted because there are too many.
	Omitted int `json:"omitted,omitempty"`
	// Unknown lists the parts that could not be read.
	Unknown []Unknown `json:"unknown,omitempty"`
}

// TreeNode is one object of a tree.
type TreeNode struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Cluster is landscaper or target.
	Cluster string `json:"cluster"`
	// Phase is the phase of Landscaper's objects, and the readiness of others.
	Phase    string       `json:"phase,omitempty"`
	Created  *metav1.Time `json:"created,omitempty"`
	Message  string       `json:"message,omitempty"`
	Failed   bool         `json:"failed,omitempty"`
	Children []*TreeNode  `json:"children,omitempty"`
}

// TreeOptions configures ReadTree.
type TreeOptions struct {
	// Namespace is the namespace. Name is the name of an Installation, an Execution or a deploy item; if it is empty,
	// the tree shows the whole namespace.
	Namespace, Name string
	// Open opens the Target of an item with the rights of the caller. If Open is nil, objects are shown as in the
	// status of their item. close may be nil.
	Open func(ctx context.Context, target *lsv1alpha1.Target) (c client.Reader, close func(), err error)
	// Clock returns the current time. The default is the real clock.
	Clock clock.PassiveClock
}

// ReadTree reads a tree with the rights of the client. Tree.Unknown lists what cannot be read. ReadTree returns an
// error if no object has the name, or if the namespace cannot be listed.
func ReadTree(ctx context.Context, c client.Reader, o TreeOptions) (*Tree, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	r := &treeReader{c: c, o: o, tree: &Tree{APIVersion: APIVersion, Kind: KindTree, Time: metav1.NewTime(o.Clock.Now().UTC())}}
	var err error
	if o.Name == "" {
		err = r.all(ctx)
	} else {
		err = r.named(ctx)
	}
	if err != nil {
		return nil, err
	}
	return r.tree, nil
}

// treeReader builds one tree.
type treeReader struct {
	c     client.Reader
	o     TreeOptions
	tree  *Tree
	nodes int
}

// all reads the Installations that belong to no other one, and the items that belong to no Execution.
func (r *treeReader) all(ctx context.Context) error {
	var installations lsv1alpha1.InstallationList
	if err := r.list(ctx, kindInst, &installations, ""); err != nil {
		return err
	}
	for i := range installations.Items {
		if inst := &installations.Items[i]; inst.Labels[lsv1alpha1.EncompassedByLabel] == "" {
			r.root(r.installation(ctx, inst, 0))
		}
	}
	var items lsv1alpha1.DeployItemList
	if err := r.list(ctx, kindItem, &items, ""); err != nil {
		return err
	}
	for i := range items.Items {
		if di := &items.Items[i]; di.Labels[lsv1alpha1.ExecutionManagedByLabel] == "" {
			r.root(r.item(ctx, di))
		}
	}
	return nil
}

// named reads the object with the requested name. An Installation takes precedence over an Execution, and an Execution
// over a deploy item.
func (r *treeReader) named(ctx context.Context) error {
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
		{kindInst, &inst, func() *TreeNode { return r.installation(ctx, &inst, 0) }},
		{kindExecution, &exec, func() *TreeNode { return r.execution(ctx, &exec) }},
		{kindItem, &di, func() *TreeNode { return r.item(ctx, &di) }},
	} {
		err := r.c.Get(ctx, key, try.into)
		if err == nil {
			r.root(try.node())
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

// list reads objects of the namespace with a label, or all. More than the limit counts as omitted.
func (r *treeReader) list(ctx context.Context, kind string, into client.ObjectList, label string, value ...string) error {
	options := []client.ListOption{client.InNamespace(r.o.Namespace), client.Limit(maxChildren)}
	if label != "" {
		options = append(options, client.MatchingLabels{label: value[0]})
	}
	if err := r.c.List(ctx, into, options...); err != nil {
		return fmt.Errorf("list %ss in namespace %s: %w", kind, r.o.Namespace, err)
	}
	if into.GetContinue() != "" {
		r.unknown(kind+"s", fmt.Errorf("there are more than %d", maxChildren))
	}
	return nil
}

func (r *treeReader) unknown(part string, err error) {
	r.tree.Unknown = append(r.tree.Unknown, Unknown{Part: part, Why: line(err.Error())})
}

func (r *treeReader) root(n *TreeNode) {
	if n != nil {
		r.tree.Roots = append(r.tree.Roots, n)
	}
}

// node returns a node, or nil if there are too many.
func (r *treeReader) node(kind, cluster string, obj metav1.Object) *TreeNode {
	if r.nodes++; r.nodes > maxTreeNodes {
		r.tree.Omitted++
		return nil
	}
	created := obj.GetCreationTimestamp()
	return &TreeNode{Kind: word(kind), Namespace: word(obj.GetNamespace()), Name: word(obj.GetName()), Cluster: cluster, Created: timeRef(&created)}
}

func (n *TreeNode) add(child *TreeNode) {
	if child != nil {
		n.Children = append(n.Children, child)
	}
}

// set sets the phase and the message of one of Landscaper's objects.
func (n *TreeNode) set(phase string, e *lsv1alpha1.Error) {
	n.Phase = word(phase)
	n.Failed = phase == lsv1alpha1.PhaseStringFailed || phase == lsv1alpha1.PhaseStringDeleteFailed
	if e != nil {
		n.Message = line(e.Message)
	}
}

func (r *treeReader) installation(ctx context.Context, inst *lsv1alpha1.Installation, depth int) *TreeNode {
	n := r.node(kindInst, clusterLandscaper, inst)
	if n == nil || depth > maxTreeDepth {
		return n
	}
	n.set(string(inst.Status.InstallationPhase), inst.Status.LastError)
	var subs lsv1alpha1.InstallationList
	if err := r.list(ctx, kindInst, &subs, lsv1alpha1.EncompassedByLabel, inst.Name); err != nil {
		r.unknown("sub-installations of "+inst.Name, err)
	}
	for i := range subs.Items {
		n.add(r.installation(ctx, &subs.Items[i], depth+1))
	}
	if ref := inst.Status.ExecutionReference; ref != nil {
		var exec lsv1alpha1.Execution
		err := r.c.Get(ctx, types.NamespacedName{Namespace: r.o.Namespace, Name: ref.Name}, &exec)
		switch {
		case err == nil:
			n.add(r.execution(ctx, &exec))
		case !apierrors.IsNotFound(err):
			r.unknown(kindExecution+" "+ref.Name, err)
		}
	}
	return n
}

func (r *treeReader) execution(ctx context.Context, exec *lsv1alpha1.Execution) *TreeNode {
	n := r.node(kindExecution, clusterLandscaper, exec)
	if n == nil {
		return nil
	}
	n.set(string(exec.Status.ExecutionPhase), exec.Status.LastError)
	var items lsv1alpha1.DeployItemList
	if err := r.list(ctx, kindItem, &items, lsv1alpha1.ExecutionManagedByLabel, exec.Name); err != nil {
		r.unknown("deploy items of "+exec.Name, err)
	}
	for i := range items.Items {
		n.add(r.item(ctx, &items.Items[i]))
	}
	return n
}

func (r *treeReader) item(ctx context.Context, di *lsv1alpha1.DeployItem) *TreeNode {
	n := r.node(kindItem, clusterLandscaper, di)
	if n == nil {
		return nil
	}
	n.set(string(di.Status.Phase), di.Status.LastError)
	if c := contract.GetCondition(di.Status.Conditions, contract.ConditionWaiting); n.Message == "" && c != nil && c.Status == lsv1alpha1.ConditionTrue {
		n.Message = line(c.Message)
	}
	f := &Facts{Item: di}
	objects, _ := f.provider()
	if objects == nil {
		return n
	}
	live, done := r.open(ctx, di)
	defer done()
	for _, o := range objects.Listed {
		n.add(r.object(ctx, live, o))
	}
	r.tree.Omitted += objects.Omitted
	return n
}

// open opens the Target of an item, if the caller may read it.
func (r *treeReader) open(ctx context.Context, di *lsv1alpha1.DeployItem) (live client.Reader, done func()) {
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
		r.unknown("target "+di.Spec.Target.Name+" of "+di.Name, err)
		return nil, done
	}
	return live, done
}

// ageOf is how old a node is.
func (n *TreeNode) ageOf(now time.Time) string {
	if n.Created == nil {
		return ""
	}
	return short(now.Sub(n.Created.Time))
}
