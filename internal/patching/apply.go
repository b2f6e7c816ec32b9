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
)

const defaultAttempts = 10

// The delay before attempt n+1 is random, up to firstWait doubled n times, and at most longestWait.
const (
	firstWait   = 2 * time.Millisecond
	longestWait = 500 * time.Millisecond
)

// guardedLists are the lists of metadata that other clients add to.
var guardedLists = []string{"finalizers", "ownerReferences"}

// errNoReference is returned because functions and locks need the version from which they start.
var errNoReference = errors.New("no reference body: the object has no resourceVersion, so it was never read")

// Apply sends the content in as few calls as possible, and sets obj to what the API server returns.
func Apply(ctx context.Context, c client.Client, obj client.Object, content Content, opts Options) (Result, error) {
	if isNil(obj) {
		return Result{Left: content}, errNoReference
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
		a.body, _ = Body(obj)
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

// applier is one call of Apply.
type applier struct {
	target   target
	obj      client.Object
	options  Options
	endpoint StatusEndpoint // as far as it is known

	left  Content
	body  map[string]any // the latest known version
	typed reflect.Type   // the Go type of body, or nil if body is raw
	uid   types.UID      // of the object to which the content belongs
	fresh bool           // body came from the API server

	result Result
}

func (a *applier) begin() error {
	var err error
	if a.target.kind, err = a.target.client.GroupVersionKindFor(a.obj); err != nil {
		return fmt.Errorf("find the kind of %T: %w", a.obj, err)
	}
	if found, known := kinds.Get(a.target.kind); known && a.endpoint == StatusEndpointUnknown {
		a.endpoint, _ = found.(StatusEndpoint)
	}
	a.uid = a.obj.GetUID()
	metadata := member(a.left.Changes, fieldMetadata)
	for _, list := range guardedLists {
		// The list was computed from the known version. On any other version it could drop items of other clients.
		a.options.Locked = a.options.Locked || hasMember(metadata, list)
	}
	if a.obj.GetResourceVersion() == "" && (a.options.Locked || len(a.left.Funcs) > 0) {
		return errNoReference
	}
	if _, raw := a.obj.(*unstructured.Unstructured); !raw {
		a.typed = reflect.TypeOf(a.obj).Elem()
		if len(a.left.Funcs) > 0 {
			return nil // a raw body was read from the API server
		}
	}
	a.body, err = Body(a.obj)
	return err
}

// run tries until it succeeds, the error is not a conflict, or the attempts are used up.
func (a *applier) run(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		err := a.attempt(ctx)
		if len(a.result.Calls) > 0 {
			a.result.Attempts = attempt
		}
		seen := versionOf(a.body)
		if err = a.classify(ctx, err); a.result.Gone || !apierrors.IsConflict(err) || a.options.Locked {
			return err
		}
		if attempt, err = a.renew(ctx, attempt, seen, err); err != nil || a.result.Gone {
			return err
		}
	}
}

// renew waits and reads until the version differs from seen, because a cache may lag behind the conflict. Each round
// counts as an attempt. When the attempts are used up, it returns the conflict.
func (a *applier) renew(ctx context.Context, attempt int, seen string, conflict error) (int, error) {
	for ; attempt < a.options.Attempts; attempt++ {
		if err := wait(ctx, attempt); err != nil {
			return attempt, errors.Join(conflict, err)
		}
		if versionOf(a.body) == seen {
			if err := a.read(ctx); err != nil || a.result.Gone {
				return attempt, err
			}
		}
		if versionOf(a.body) != seen {
			return attempt, nil
		}
	}
	return attempt, conflict
}

// classify determines the meaning of a validation error. The API server applies the operations of a JSON patch before
// it compares the versions, so an operation that does not fit the newer body fails first. A UID that is not the stored
// one is a validation error too.
func (a *applier) classify(ctx context.Context, err error) error {
	status := apierrors.APIStatus(nil)
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
		return err
	}
	if details := status.Status().Details; details != nil && (details.Name != "" || len(details.Causes) > 0) {
		a.result.Gone = a.uid != "" && slices.ContainsFunc(details.Causes, isOtherUID)
		if a.result.Gone {
			return nil
		}
		return err // contains the field
	}
	seen := versionOf(a.body)
	if readErr := a.read(ctx); readErr != nil {
		return errors.Join(err, readErr)
	}
	if a.result.Gone {
		return nil
	}
	if versionOf(a.body) == seen {
		return err
	}
	return a.conflict()
}

func isOtherUID(cause metav1.StatusCause) bool { return cause.Field == PathOf(fieldMetadata, fieldUID) }

func (a *applier) conflict() error {
	resource := schema.GroupResource{Group: a.target.kind.Group, Resource: a.target.kind.Kind}
	return apierrors.NewConflict(resource, a.target.key.Name, errChanged)
}

// wait waits for a random delay, to spread the clients that conflict on one object.
func wait(ctx context.Context, attempt int) error {
	longest := min(firstWait<<min(attempt, 16), longestWait)
	timer := time.NewTimer(rand.N(longest)) // spreads load, no security
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// read gets the latest version.
func (a *applier) read(ctx context.Context) error {
	raw := a.target.raw()
	a.result.Reads++
	err := a.target.reader.Get(ctx, a.target.key, raw)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("read: %w", err)
	}
	// Another object of the same name is not the one for which the patch was made.
	if err != nil || a.uid != "" && raw.GetUID() != a.uid {
		a.result.Gone = true
		return nil
	}
	a.take(raw)
	return nil
}

func (a *applier) take(raw *unstructured.Unstructured) {
	a.body, a.typed, a.fresh = raw.Object, nil, true
}
