// SPDX-License-Identifier: Apache-2.0

package race

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// Contender is a program that deploys objects to a cluster.
type Contender struct {
	// Name is the name of the contender in the table.
	Name string
	// Start returns a runner for a turn of the contender.
	Start func(ctx context.Context, field *Workload) (Runner, error)
}

// Runner deploys the items of a contender in one turn.
type Runner interface {
	// Load receives the desired state of all items. The duration of Load is not measured.
	Load(ctx context.Context, items []Item) error
	// Run deploys the loaded items and returns when all objects are in the cluster. The duration of Run is measured.
	Run(ctx context.Context) error
	// Stop stops everything that the runner started.
	Stop() error
}

// Leg is one of the three parts of a contender's turn: everything is new, nothing has changed, or one object of each
// item has changed.
type Leg int

// The legs of a turn, in order.
const (
	Install Leg = iota
	Nothing
	OneOfFifty
	legs
)

// String returns the name of the leg for the table.
func (l Leg) String() string {
	return [legs]string{"install", "no-op", "one of 50 changed"}[l]
}

// limit is the time limit of a leg, and of the job with which a deployer connects to the target.
const limit = 5 * time.Minute

// Run measures the contenders. Each round consists of one turn of each contender. Before the first round, Run runs a
// short turn of each contender as a warm-up, which is not measured. It returns an error if a contender fails, or if the
// cluster does not contain the desired objects.
func Run(ctx context.Context, cp *controlplane.ControlPlane, rounds int, contenders ...Contender) (*Result, error) {
	scheme, err := landscapertest.Scheme()
	if err != nil {
		return nil, err
	}
	cl, err := client.NewWithWatch(cp.Config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	counter, err := newCalls(cp.Config)
	if err != nil {
		return nil, err
	}
	r := &race{cp: cp, client: cl, calls: counter, result: newResult(contenders)}
	for _, c := range contenders {
		if err := r.runContender(ctx, c, AtOnce, newResult(contenders)); err != nil {
			return nil, fmt.Errorf("warm-up of %s: %w", c.Name, err)
		}
	}
	for round := range rounds {
		for _, c := range rotate(contenders, round) {
			if err := r.runContender(ctx, c, Items, r.result); err != nil {
				return nil, fmt.Errorf("%s: %w", c.Name, err)
			}
		}
	}
	return r.result, nil
}

// rotate returns the contenders in the order in which they run in a round. In each round, the list is rotated by one
// more position.
func rotate(contenders []Contender, round int) []Contender {
	first := round % len(contenders)
	return slices.Concat(contenders[first:], contenders[:first])
}

type race struct {
	cp     *controlplane.ControlPlane
	client client.WithWatch
	calls  *calls
	result *Result
}

// runContender runs all legs of a contender.
func (r *race) runContender(ctx context.Context, c Contender, items int, result *Result) error {
	field, err := newWorkload(ctx, r.cp, r.client, items)
	if err != nil {
		return err
	}
	runner, err := c.Start(ctx, field)
	if err != nil {
		return err
	}
	for leg := range legs {
		var got lap
		if got, err = r.runLeg(ctx, leg, field, runner); err != nil {
			err = fmt.Errorf("%s: %w", leg, err)
			break
		}
		result.add(c.Name, leg, got)
	}
	if left := runner.Stop(); err == nil {
		err = left
	}
	if err != nil {
		return err
	}
	return field.clear(ctx)
}

// runLeg runs a leg and measures its duration and its requests.
func (r *race) runLeg(ctx context.Context, leg Leg, field *Workload, runner Runner) (lap, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	changed := leg == OneOfFifty
	if err := runner.Load(ctx, field.newItems(changed)); err != nil {
		return lap{}, fmt.Errorf("load: %w", err)
	}
	before, err := r.calls.readCount(ctx)
	if err != nil {
		return lap{}, err
	}
	runtime.GC() // collect the garbage of other contenders before the measurement
	began := time.Now()
	if err := runner.Run(ctx); err != nil {
		return lap{}, err
	}
	took := time.Since(began)
	after, err := r.calls.readCount(ctx)
	if err != nil {
		return lap{}, err
	}
	return lap{took: took, calls: after - before, objects: field.items * Objects}, field.check(ctx, changed)
}

// Each calls do for each element of the list, with at most limit concurrent calls, and returns the first error.
func Each[T any](ctx context.Context, limit int, list []T, do func(ctx context.Context, index int, one T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(limit)
	for i, one := range list {
		group.Go(func() error { return do(ctx, i, one) })
	}
	return group.Wait()
}

// NewClient returns a client that is already connected and knows the kind ConfigMap. Therefore, measurements do not
// include the connection and the discovery.
func NewClient(cfg *rest.Config) (client.Client, error) {
	cl, err := client.New(cfg, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	if _, err := cl.RESTMapper().RESTMapping(schema.GroupKind{Kind: "ConfigMap"}, "v1"); err != nil {
		return nil, fmt.Errorf("find ConfigMaps: %w", err)
	}
	return cl, nil
}
