// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
)

// fakeCache is a cache that is filled only if the field `filled` is true. Like a cache without watches, it always calls
// itself synced.
type fakeCache struct {
	cache.Cache

	filled bool
}

func (f *fakeCache) WaitForCacheSync(context.Context) bool { return true }

func (f *fakeCache) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	informer := controllertest.NewFakeInformer()
	if f.filled {
		informer.Synced()
	}
	return informer, nil
}

// fakeReader refuses to list Targets.
type fakeReader struct {
	client.Reader

	err   error
	lists int
}

func (f *fakeReader) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	f.lists++
	if _, ok := list.(*lsv1alpha1.TargetList); ok {
		return f.err
	}
	return nil
}

func TestReadiness(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "targets"}, "", errors.New("no"))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("the probe fails with the reason while a list is forbidden, and recovers [F56]", func(t *testing.T) {
		filled, reader := &fakeCache{}, &fakeReader{err: refused}
		check := &readCheck{cache: filled, live: reader}
		if err := check.check(request); !errors.Is(err, refused) || !strings.Contains(err.Error(), "list targets") {
			t.Errorf("want an error about the permission to list Targets, got %v", err)
		}
		if reader.err = nil; check.check(request) == nil {
			t.Error("want not ready before the cache is filled")
		}
		filled.filled = true
		if err := check.check(request); err != nil {
			t.Errorf("want ready, got %v", err)
		}
		if reader.lists = 0; check.check(request) != nil || reader.lists > 0 {
			t.Errorf("want no requests of a ready process, got %d lists", reader.lists)
		}
	})
	t.Run("the probe fails after a permission is removed [F56]", func(t *testing.T) {
		reader := &fakeReader{err: refused}
		check := &readCheck{cache: &fakeCache{filled: true}, live: reader}
		check.failed(t.Context(), &toolscache.Reflector{}, errors.New("connection refused"))
		if err := check.check(request); err != nil {
			t.Errorf("an outage counts as a missing permission: %v", err)
		}
		check.failed(t.Context(), &toolscache.Reflector{}, refused)
		if err := check.check(request); !errors.Is(err, refused) {
			t.Errorf("want the reason, got %v", err)
		}
		if reader.err = nil; check.check(request) != nil {
			t.Error("the check still fails after the list is allowed again")
		}
	})
	t.Run("the probe logs a reason once [F56]", func(t *testing.T) {
		var lines []string
		reader := &fakeReader{err: refused}
		check := withLog(funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}), (&readCheck{cache: &fakeCache{}, live: reader}).check)
		for range 3 {
			if check(request) == nil {
				t.Error("want not ready")
			}
		}
		if len(lines) != 1 || !strings.Contains(lines[0], "list targets") {
			t.Errorf("want one line, got %q", lines)
		}
	})
}
