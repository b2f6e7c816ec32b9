// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// patience is the time limit of each wait in a scenario. It is long because some of Landscaper's controllers poll every
// five seconds and because the machine may be busy.
const patience = 90 * time.Second

// look is the poll interval.
const look = 50 * time.Millisecond

// Env is the environment of a scenario.
type Env struct {
	client.Client // client that reads from the API server

	// Namespace is the namespace of the Installations. It is also the namespace of the deployed objects, unless the
	// scenario specifies another namespace.
	Namespace string

	cp     *controlplane.ControlPlane
	access string            // kubeconfig for the Targets of the scenario
	user   string            // user of that kubeconfig
	jobs   map[string]string // last job of each Installation
	uids   map[string]string // UIDs that the steps of `remembered` have stored
}

// NewEnv creates the namespace of a scenario and a user for its Targets.
func NewEnv(ctx context.Context, cp *controlplane.ControlPlane, audit *Audit, namespace string) (*Env, error) {
	scheme, err := landscapertest.Scheme()
	if err != nil {
		return nil, err
	}
	c, err := client.New(cp.Config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	e := &Env{Client: c, Namespace: namespace, cp: cp, user: "target-" + namespace, jobs: map[string]string{}, uids: map[string]string{}}
	config, err := audit.User(cp, e.user)
	if err != nil {
		return nil, err
	}
	access, err := faultnet.Kubeconfig(config)
	if err != nil {
		return nil, err
	}
	e.access = string(access)
	if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return nil, fmt.Errorf("create namespace: %w", err)
	}
	return e, e.await(ctx, "Landscaper creates the Context", func(ctx context.Context) error {
		return c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: lsv1alpha1.DefaultContextName}, &lsv1alpha1.Context{})
	})
}

// finalError is an error that would remain even if a step waited longer.
type finalError struct{ error }

// await calls `ok` until it returns nil or a finalError. After the time limit `patience`, await returns the last error.
func (e *Env) await(ctx context.Context, what string, ok func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(look)
	defer tick.Stop()
	last := errors.New("the condition was not checked")
	for {
		err := ok(ctx)
		if err == nil {
			return nil
		}
		if _, final := errors.AsType[finalError](err); final {
			return fmt.Errorf("%s: %w", what, err)
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w (%w)", what, last, ctx.Err())
		case <-tick.C:
		}
	}
}

// installation reads an Installation.
func (e *Env) installation(ctx context.Context, name string) (*lsv1alpha1.Installation, error) {
	in := &lsv1alpha1.Installation{}
	err := e.Get(ctx, client.ObjectKey{Namespace: e.Namespace, Name: name}, in)
	return in, err
}

// Items returns the deploy items in the namespace of the scenario.
func (e *Env) Items(ctx context.Context) ([]lsv1alpha1.DeployItem, error) {
	list := &lsv1alpha1.DeployItemList{}
	err := e.List(ctx, list, client.InNamespace(e.Namespace))
	return list.Items, err
}

// item reads the deploy item that has the given name in the blueprint.
func (e *Env) item(ctx context.Context, name string) (*lsv1alpha1.DeployItem, error) {
	list := &lsv1alpha1.DeployItemList{}
	labels := client.MatchingLabels{lsv1alpha1.ExecutionManagedNameLabel: name}
	if err := e.List(ctx, list, client.InNamespace(e.Namespace), labels); err != nil {
		return nil, err
	}
	if len(list.Items) != 1 {
		return nil, fmt.Errorf("there are %d deploy items for %q", len(list.Items), name)
	}
	return &list.Items[0], nil
}

// configMap returns the data of a ConfigMap in the namespace of the scenario.
func (e *Env) configMap(ctx context.Context, name string) (map[string]string, error) {
	cm := &corev1.ConfigMap{}
	err := e.Get(ctx, client.ObjectKey{Namespace: e.Namespace, Name: name}, cm)
	return cm.Data, err
}

// explain describes the state of all items, for the end of an error message.
func (e *Env) explain(ctx context.Context) string {
	items, err := e.Items(ctx)
	if err != nil {
		return err.Error()
	}
	var parts []string
	for i := range items {
		s := items[i].Status
		text := fmt.Sprintf("item %s is %q", items[i].Labels[lsv1alpha1.ExecutionManagedNameLabel], s.Phase)
		if s.LastError != nil {
			text += ": " + s.LastError.Message
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// rawJSON encodes a value that consists of maps, lists and scalars.
func rawJSON(value any) []byte {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err) // this error cannot happen, because the value is part of a scenario
	}
	return raw
}
