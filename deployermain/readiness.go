// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// probeTimeout limits the duration of a check. It is less than one second, which is how long a kubelet waits for a
// probe by default.
const probeTimeout = 800 * time.Millisecond

// addChecks adds the checks of the process. The process is healthy if it responds. It is ready if it can read deploy
// items, Targets and Contexts, may write deploy items, and leads or waits for the leader.
func addChecks(mgr manager.Manager, reads *readCheck, elected *lock, log logr.Logger) error {
	log = log.WithName("readiness")
	writes := &writeCheck{client: mgr.GetClient(), namespace: reads.namespace}
	checks := []error{
		mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("cache", withLog(log, reads.check)),
		mgr.AddReadyzCheck("rights", withLog(log, writes.check)),
	}
	if elected != nil {
		checks = append(checks, mgr.AddReadyzCheck("leader-election", withLog(log, func(*http.Request) error { return elected.checkLease() })))
	}
	return errors.Join(checks...)
}

// withLog wraps a check. If the check fails for a new reason, it logs the reason. This is needed because the response
// to a probe of all checks does not contain the reasons.
func withLog(log logr.Logger, check healthz.Checker) healthz.Checker {
	var mu sync.Mutex
	reason := ""
	return func(req *http.Request) error {
		err := check(req)
		text := ""
		if err != nil {
			text = err.Error()
		}
		mu.Lock()
		defer mu.Unlock()
		if text != reason && text != "" {
			log.Info("not ready", "reason", text)
		}
		reason = text
		return err
	}
}

// readCheck checks whether the process can read deploy items, Targets and Contexts. It sends requests to the API server
// only if the cache is not filled yet, or if the API server has refused a list or watch since the last successful
// check.
type readCheck struct {
	namespace string
	cache     cache.Cache
	live      client.Reader

	refused atomic.Bool
}

// failed is called when a list or watch of the cache has failed.
func (r *readCheck) failed(ctx context.Context, reflector *toolscache.Reflector, err error) {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		r.refused.Store(true)
	}
	toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
}

func (r *readCheck) check(req *http.Request) error {
	ctx, cancel := context.WithTimeout(req.Context(), probeTimeout)
	defer cancel()
	notFilled := r.checkCache(ctx)
	if notFilled == nil && !r.refused.Load() {
		return nil
	}
	if err := r.read(ctx); err != nil {
		return err
	}
	r.refused.Store(false)
	return notFilled
}

// checkCache returns nil if the cache contains all objects. It starts the watches that the controller has not started yet:
// without watches, a cache calls itself synced.
func (r *readCheck) checkCache(ctx context.Context) error {
	for _, obj := range []client.Object{&lsv1alpha1.DeployItem{}, &lsv1alpha1.Target{}, &lsv1alpha1.Context{}} {
		informer, err := r.cache.GetInformer(ctx, obj, cache.BlockUntilSynced(false))
		if err != nil {
			return err
		}
		if !informer.HasSynced() {
			return errors.New("the cache is not filled yet")
		}
	}
	return nil
}

// read lists one object of each kind.
func (r *readCheck) read(ctx context.Context) error {
	for name, list := range map[string]client.ObjectList{
		"deploy items": &lsv1alpha1.DeployItemList{}, "targets": &lsv1alpha1.TargetList{}, "contexts": &lsv1alpha1.ContextList{},
	} {
		if err := r.live.List(ctx, list, client.InNamespace(r.namespace), client.Limit(1)); err != nil {
			return fmt.Errorf("list %s: %w", name, err)
		}
	}
	return nil
}
