// SPDX-License-Identifier: Apache-2.0

package patching

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/deployerkit/deployerkit/internal/jsondiff"
	"github.com/deployerkit/deployerkit/internal/notfound"
)

const defaultAttempts = 10

// These constants limit the random delay between two attempts. The maximum delay is minRetryDelay. It doubles with each
// attempt, up to maxRetryDelay.
const (
	minRetryDelay = 2 * time.Millisecond
	maxRetryDelay = 500 * time.Millisecond
)

// guardedLists contains the lists in the metadata to which other clients may add items. A merge patch that changes such
// a list makes Apply behave as with the option Locked.
var guardedLists = []string{"finalizers", "ownerReferences"}

// errNotRead is returned if the object is nil. It is also returned if the object has no resourceVersion, but
// Content.Funcs or the option Locked requires one.
var errNotRead = errors.New("the object must be read before it is patched: it has no resourceVersion")

// Apply changes the object in the cluster according to the content, in as few calls as possible. It stores the response
// of the API server in obj.
func Apply(ctx context.Context, c client.Client, obj client.Object, content Content, opts Options) (Result, error) {
	if isNil(obj) {
		return Result{Left: content}, errNotRead
	}
	a := &applier{obj: obj, options: opts, left: content, endpoint: opts.Endpoint}
	a.target = target{client: c, reader: cmp.Or[client.Reader](opts.Reader, c), key: client.ObjectKeyFromObject(obj)}
	if a.options.Attempts < 1 {
		a.options.Attempts = defaultAttempts
	}
	err := a.begin()
	if err == nil {
		err = a.run(ctx)
	}
	if a.fresh {
		err = errors.Join(err, setBody(obj, a.body))
	} else if a.body == nil {
		a.body, _ = ToBody(obj)
	}
	if !a.result.Gone {
		a.result.Body = a.body
	}
	if err != nil {
		a.result.Left = a.left
		err = fmt.Errorf("patch %s %s: %w", a.target.kind.Kind, a.target.key, err)
	}
	for _, warning := range a.result.Warnings {
		log.FromContext(ctx).Info("patch: "+warning, "kind", a.target.kind.Kind, "object", a.target.key.String())
	}
	return a.result, err
}

// applier represents one call of Apply.
type applier struct {
	target   target
	obj      client.Object
	options  Options
	endpoint StatusEndpoint // StatusEndpointUnknown until the endpoint is known

	left  Content
	body  map[string]any // the latest known version of the object
	typed reflect.Type   // the Go type of the body, or nil if the body is raw
	uid   types.UID      // the UID of the object for which the content was made
	fresh bool           // the body came from the API server

	result Result
}

func (a *applier) begin() error {
	var err error
	if a.target.kind, err = a.target.client.GroupVersionKindFor(a.obj); err != nil {
		return fmt.Errorf("find the kind of %T: %w", a.obj, err)
	}
	if found, known := kindCache.Get(a.target.kind); known && a.endpoint == StatusEndpointUnknown {
		a.endpoint, _ = found.(StatusEndpoint)
	}
	a.uid = a.obj.GetUID()
	metadata := jsondiff.ObjectAt(a.left.Changes, fieldMetadata)
	for _, list := range guardedLists {
		// The new list is based on the known version. Writing it would remove items that only another version contains.
		a.options.Locked = a.options.Locked || hasMember(metadata, list)
	}
	if a.obj.GetResourceVersion() == "" && (a.options.Locked || len(a.left.Funcs) > 0) {
		return errNotRead
	}
	if _, raw := a.obj.(*unstructured.Unstructured); !raw {
		a.typed = reflect.TypeOf(a.obj).Elem()
		if len(a.left.Funcs) > 0 {
			return nil // applier.newPlan reads the raw body from the API server
		}
	}
	a.body, err = ToBody(a.obj)
	return err
}

// run makes attempts until one succeeds, fails with an error that is not a conflict, or is the last one.
func (a *applier) run(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		err := a.attempt(ctx)
		if len(a.result.Calls) > 0 {
			a.result.Attempts = attempt
		}
		seen := getVersion(a.body)
		if err = a.handleInvalid(ctx, err); a.result.Gone || !apierrors.IsConflict(err) || a.options.Locked {
			return err
		}
		if attempt, err = a.readUntilChanged(ctx, attempt, seen, err); err != nil || a.result.Gone {
			return err
		}
	}
}

// readUntilChanged waits and reads the object, again and again, until it gets another version than `seen`. A single
// read may not be enough, because a cache may lag behind. Each read counts as an attempt. After the last attempt,
// readUntilChanged returns the conflict.
func (a *applier) readUntilChanged(ctx context.Context, attempt int, seen string, conflict error) (int, error) {
	for ; attempt < a.options.Attempts; attempt++ {
		if err := wait(ctx, attempt); err != nil {
			return attempt, errors.Join(conflict, err)
		}
		if getVersion(a.body) == seen {
			if err := a.read(ctx); err != nil || a.result.Gone {
				return attempt, err
			}
		}
		if getVersion(a.body) != seen {
			return attempt, nil
		}
	}
	return attempt, conflict
}

// handleInvalid handles validation errors that are not caused by the patch itself. If another client has changed the
// object, a JSON patch may lead to a validation error, because the API server applies the operations before it compares
// the versions. In this case, handleInvalid returns a conflict. If the object was deleted and created again, a patch
// with the old UID also leads to a validation error. In this case, handleInvalid sets Gone and returns nil. It returns
// any other error unchanged.
func (a *applier) handleInvalid(ctx context.Context, err error) error {
	status := apierrors.APIStatus(nil)
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
		return err
	}
	if details := status.Status().Details; details != nil && (details.Name != "" || len(details.Causes) > 0) {
		a.result.Gone = a.uid != "" && slices.ContainsFunc(details.Causes, isOtherUID)
		if a.result.Gone {
			return nil
		}
		return err // an error that names a field is caused by the patch
	}
	seen := getVersion(a.body)
	if readErr := a.read(ctx); readErr != nil {
		return errors.Join(err, readErr)
	}
	if a.result.Gone {
		return nil
	}
	if getVersion(a.body) == seen {
		return err
	}
	return a.newConflict()
}

func isOtherUID(cause metav1.StatusCause) bool {
	return cause.Field == jsondiff.PathOf(fieldMetadata, fieldUID)
}

func (a *applier) newConflict() error {
	resource := schema.GroupResource{Group: a.target.kind.Group, Resource: a.target.kind.Kind}
	return apierrors.NewConflict(resource, a.target.key.Name, errChanged)
}

// wait waits for a random time, so that several clients that change the same object do not conflict again.
func wait(ctx context.Context, attempt int) error {
	longest := min(minRetryDelay<<min(attempt, 16), maxRetryDelay)
	timer := time.NewTimer(rand.N(longest)) // the number only spreads the load, so it need not be secure
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// read reads the latest version of the object, or sets Gone if the object no longer exists.
func (a *applier) read(ctx context.Context) error {
	raw := a.target.raw()
	a.result.Reads++
	err := a.target.reader.Get(ctx, a.target.key, raw)
	if err != nil && !notfound.IsProof(err) {
		return fmt.Errorf("read: %w", err)
	}
	// An object with the same name but another UID is not the object for which the patch was made.
	if err != nil || a.uid != "" && raw.GetUID() != a.uid {
		a.result.Gone = true
		return nil
	}
	a.setRaw(raw)
	return nil
}

func (a *applier) setRaw(raw *unstructured.Unstructured) {
	a.body, a.typed, a.fresh = raw.Object, nil, true
}
