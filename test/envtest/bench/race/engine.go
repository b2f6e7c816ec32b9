// SPDX-License-Identifier: Apache-2.0

package race

import (
	"context"
	"encoding/json"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/observe"
)

// NewEngine returns a contender that uses package apply in the same way as the manifest deployer does: it watches the
// objects and encodes the inventory after each change.
func NewEngine() Contender {
	return Contender{Name: "apply.Engine", Start: func(ctx context.Context, field *Workload) (Runner, error) {
		cl, err := NewClient(field.ControlPlane.Config)
		if err != nil {
			return nil, err
		}
		watcher, err := observe.NewForConfig(field.ControlPlane.Config, observe.Options{})
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithCancel(ctx)
		watcher.Start(ctx)
		return &engine{client: cl, watcher: watcher, cancel: cancel}, nil
	}}
}

type engine struct {
	client  client.Client
	watcher *observe.Watcher
	cancel  context.CancelFunc

	items   []Item
	desired [][]apply.Desired
	// invs contains the inventory of each item.
	invs []apply.Inventory
}

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

func (e *engine) Load(_ context.Context, items []Item) error {
	e.items, e.desired = items, make([][]apply.Desired, len(items))
	if e.invs == nil {
		e.invs = make([]apply.Inventory, len(items))
	}
	for i, item := range items {
		for _, o := range item.Objects {
			e.desired[i] = append(e.desired[i], apply.Desired{Object: o})
		}
	}
	return nil
}

func (e *engine) Run(ctx context.Context) error {
	return Each(ctx, AtOnce, e.items, e.apply)
}

// apply applies the objects of an item with the same calls as the manifest deployer.
func (e *engine) apply(ctx context.Context, index int, item Item) error {
	checkpoint := func(_ context.Context, inv apply.Inventory) error {
		_, err := json.Marshal(inv)
		return err
	}
	engine := apply.New(e.client, e.client.RESTMapper(), apply.Options{Watched: e.watcher, StartWatch: e.watch, Checkpoint: checkpoint, Concurrency: Concurrency})
	e.watcher.Suspend(item.Owner.UID)
	inv, report, err := engine.Apply(ctx, item.Owner, e.desired[index], e.invs[index])
	e.invs[index] = inv
	if err == nil && !report.IsDone() {
		err = errors.New(report.Reason())
	}
	if err != nil {
		return err
	}
	if err := checkpoint(ctx, inv); err != nil {
		return err
	}
	return e.observe(ctx, item, report.Owned)
}

func (e *engine) watch(ctx context.Context, resource schema.GroupVersionResource, namespaces []string) {
	_, _ = e.watcher.Watch(ctx, resource, namespaces...) // if Watch fails, the method `observe` returns the error
}

// observe passes the expected state of the objects to the watches.
func (e *engine) observe(ctx context.Context, item Item, owned []observe.BaselineObject) error {
	if _, err := e.watcher.Watch(ctx, configMaps, item.Owner.Namespace); err != nil {
		return err
	}
	e.watcher.SetBaseline(item.Owner.UID, owned)
	return nil
}

func (e *engine) Stop() error {
	e.cancel()
	e.watcher.Wait()
	return nil
}
