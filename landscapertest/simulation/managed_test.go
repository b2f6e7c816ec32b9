// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/landscapertest/simulation"
	"github.com/deployerkit/deployerkit/managed"
)

const (
	applierType = "example.com/configmaps"
	// settings is the number of ConfigMaps from which the seed selects those of an item.
	settings = 4
	// foreignLabel marks the objects that belong to another writer.
	foreignLabel = "example.com/foreign"
)

var (
	configMapKind = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	statusKind    = schema.GroupVersionKind{Group: "simulation.example.com", Version: "v1", Kind: "Status"}
)

// applierConfig is the configuration of an item: the data of its ConfigMaps by name.
type applierConfig struct {
	metav1.TypeMeta `json:",inline"`
	ConfigMaps      map[string]string `json:"configMaps"`
}

// applierStatus is the provider status.
type applierStatus struct {
	Inventory apply.Inventory `json:"inventory"`
}

// applier applies ConfigMaps to the target of each item.
type applier struct {
	deployerlib.Base
	manager *managed.ResourceManager
}

func newApplier(p *simulation.Process) *applier {
	return &applier{manager: managed.New(managed.Options{Name: "simulated", WrapTransport: p.Transport})}
}

func (a *applier) UseRuntime(rt deployerlib.Runtime) error { return a.manager.UseRuntime(rt) }

func (a *applier) ExtensionHooks() extension.ReconcileExtensionHooks { return a.manager.NewHooks(nil) }

func (a *applier) begin(ctx context.Context, di *lsv1alpha1.DeployItem) (*managed.Run, error) {
	last, err := decodeStatus(di)
	if err != nil {
		return nil, err
	}
	return a.manager.Begin(ctx, di, last.Inventory, func(inventory apply.Inventory) error {
		return deployerlib.SetProviderStatus(di, applierStatus{Inventory: inventory}, statusKind)
	})
}

func decodeStatus(di *lsv1alpha1.DeployItem) (applierStatus, error) {
	status := applierStatus{}
	if stored := di.Status.ProviderStatus; stored != nil {
		return status, json.Unmarshal(stored.Raw, &status)
	}
	return status, nil
}

func (a *applier) Reconcile(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	config := applierConfig{}
	if err := json.Unmarshal(di.Spec.Configuration.Raw, &config); err != nil {
		return err
	}
	desired := []apply.Desired{}
	for name, value := range config.ConfigMaps {
		obj := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"value": value}}}
		obj.SetGroupVersionKind(configMapKind)
		obj.SetNamespace("default")
		obj.SetName(name)
		desired = append(desired, apply.Desired{Object: obj})
	}
	r, err := a.begin(ctx, di)
	if err != nil {
		return err
	}
	if err := r.Connect(ctx, target); err != nil {
		return err
	}
	if _, err := r.Apply(ctx, desired, apply.Options{}); err != nil {
		return err
	}
	if err := r.CheckAllReady(ctx, 0); err != nil {
		return err
	}
	r.Finish()
	return nil
}

func (a *applier) ForceReconcile(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	a.manager.ForceResync(di)
	return a.Reconcile(ctx, lsCtx, di, target)
}

func (a *applier) Delete(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	r, err := a.begin(ctx, di)
	if err != nil {
		return err
	}
	if err := r.Connect(ctx, target); err != nil {
		return err
	}
	return r.Delete(ctx, apply.Options{}, nil, 0)
}

func (a *applier) Resume(ctx context.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	r, err := a.begin(ctx, di)
	if err != nil {
		return err
	}
	return r.StartWatches(ctx, target)
}

// newApplierItem returns an item with some of the ConfigMaps, in one of the targets.
func newApplierItem(w *simulation.World, name string, n int) *lsv1alpha1.DeployItem {
	about := fmt.Sprintf("%s %d", name, n)
	config := applierConfig{ConfigMaps: map[string]string{}}
	for i := range settings {
		if w.Random(fmt.Sprintf("%s has %d", about, i), 3) > 0 {
			config.ConfigMaps[fmt.Sprintf("%s-%d", name, i)] = about
		}
	}
	raw, err := json.Marshal(config)
	if err != nil {
		w.Fail("encode the configuration: %v", err)
	}
	target := "first"
	if w.Random(about+" moves", 4) == 0 {
		target = "second"
	}
	di := &lsv1alpha1.DeployItem{}
	di.Spec.Configuration = &runtime.RawExtension{Raw: raw}
	di.Spec.Target = &lsv1alpha1.ObjectReference{Namespace: "default", Name: target}
	return di
}

// disturb is another writer in both targets. It changes and deletes objects of the item. Depending on the seed, it also
// owns an object whose name the item may want.
func disturb(ctx context.Context, w *simulation.World) {
	var writers sync.WaitGroup
	defer writers.Wait()
	for _, target := range []string{"first", "second"} {
		c, err := w.NewClient("writer", target)
		if err != nil {
			w.Fail("create client: %v", err)
			return
		}
		writers.Go(func() { disturbTarget(ctx, w, c, target) })
	}
}

func disturbTarget(ctx context.Context, w *simulation.World, c client.Client, target string) {
	if w.Random("foreign object in "+target, 4) == 0 {
		foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "item-1-0", Labels: map[string]string{foreignLabel: "true"}}}
		if err := c.Create(ctx, foreign); err != nil && ctx.Err() == nil {
			w.Fail("create the foreign object: %v", err)
		}
	}
	for n := range 6 {
		about := fmt.Sprintf("writer in %s %d", target, n)
		timer := time.NewTimer(time.Duration(1000+w.Random(about+" pause", 8000)) * time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("item-1-%d", w.Random(about, settings))}}
		var err error
		switch w.Random(about+" does", 3) {
		case 0:
			err = c.Delete(ctx, obj)
		case 1:
			err = c.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(`{"data":{"value":"changed"}}`)))
		case 2: // the object of the item becomes an object of the writer
			if err = c.Delete(ctx, obj); err == nil {
				obj.Labels = map[string]string{foreignLabel: "true"}
				obj.ResourceVersion, obj.UID = "", ""
				if err = c.Create(ctx, obj); apierrors.IsAlreadyExists(err) {
					err = nil
				}
			}
		}
		if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
			w.Fail("disturb: %v", err)
		}
	}
}

// checkApplied checks that a deployer changes only objects that are in the inventory of an item, and that it deletes no
// foreign object. An object that the item has adopted carries the label of the item.
func checkApplied(change simulation.Write) error {
	if !change.ByReplica || change.Request.Resource != "configmaps" {
		return nil
	}
	if change.After == nil && change.Before.GetLabels()[ownership.LabelItem] == "" {
		return errors.New("a deployer deleted an object that does not carry the label of an item")
	}
	if change.Before != nil || change.Late {
		return nil
	}
	for _, item := range change.Items {
		status, err := decodeStatus(item)
		if err != nil {
			return err
		}
		for _, inventory := range append(status.Inventory.Former, status.Inventory) {
			for _, entry := range inventory.Entries {
				if entry.Name == change.After.GetName() {
					return nil
				}
			}
		}
	}
	return fmt.Errorf("a deployer created %s before the inventory contained it", change.After.GetName())
}

// checkCorrected checks that the target of an item contains what the item describes, although another writer has changed
// and deleted objects after the last job. Depending on the seed, the item is not deleted before that writer has ended.
func checkCorrected(w *simulation.World, item *lsv1alpha1.DeployItem) error {
	if w.Random("wait for the writer", 2) == 0 && w.GetElapsed() < time.Minute {
		return errors.New("the other writer has not ended")
	}
	config := applierConfig{}
	if err := json.Unmarshal(item.Spec.Configuration.Raw, &config); err != nil {
		return err
	}
	owned := map[string]string{}
	for _, obj := range w.Target(item.Spec.Target.Name).List(configMapKind) {
		_, wanted := config.ConfigMaps[obj.GetName()]
		if obj.GetLabels()[ownership.LabelItem] == string(item.UID) && (wanted || !w.IsWrittenLate(obj)) {
			owned[obj.GetName()], _, _ = unstructured.NestedString(obj.Object, "data", "value")
		}
	}
	if !maps.Equal(owned, config.ConfigMaps) {
		return fmt.Errorf("the target %s contains %v instead of %v", item.Spec.Target.Name, owned, config.ConfigMaps)
	}
	return nil
}

// checkDeleted checks that nothing of the items is left.
func checkDeleted(w *simulation.World) error {
	for _, target := range []string{"first", "second"} {
		for _, obj := range w.Target(target).List(configMapKind) {
			if w.IsWrittenLate(obj) {
				continue
			}
			if obj.GetLabels()[foreignLabel] == "" || obj.GetLabels()[ownership.LabelItem] != "" {
				return fmt.Errorf("the ConfigMap %s is left in the target %s: %v", obj.GetName(), target, obj.GetAnnotations())
			}
		}
	}
	return nil
}

func newApplierScenario() simulation.Scenario {
	return simulation.Scenario{
		Type: applierType, Items: 1, Targets: []string{"first", "second"}, Seeds: seeds,
		New: func(p *simulation.Process) deployerlib.DeployerArgs {
			return deployerlib.DeployerArgs{Type: applierType, Deployer: newApplier(p)}
		},
		NewItem: newApplierItem, Play: disturb, CheckWrite: checkApplied, CheckDeployed: checkCorrected, CheckEnd: checkDeleted,
	}
}

func TestManaged(t *testing.T) {
	t.Run("deletes no foreign object and leaves nothing behind, whatever fails and whenever a process ends [Z2]", func(t *testing.T) {
		simulation.Run(t, newApplierScenario())
	})
}
