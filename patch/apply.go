// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The wait before attempt n+1 is random, up to firstWait doubled n times, but not longer than longestWait.
const (
	firstWait   = 2 * time.Millisecond
	longestWait = 500 * time.Millisecond
)

// errNoReference: functions and locks need the version that they start from.
var errNoReference = errors.New("no reference body: the object has no resourceVersion, so it was never read")

// errChanged is the reason of a conflict that the API server did not call one.
var errChanged = errors.New("the object has been modified")

// Apply sends the patch in the fewest calls: none when nothing would change, one when the change is in the
// main resource or in the status, otherwise one for each, the main resource first. A kind without a status
// subresource takes both in one.
// obj is the object as it was seen last, typed or unstructured; after each call it becomes what the API
// server returned. For merge changes alone it may also be just kind, namespace and name: then they are sent
// without looking whether they change anything.
//
// Merge changes alone are a JSON merge patch without a lock (see Locked). With functions everything is one
// JSON patch with the resourceVersion inside: after a conflict the object is read and the functions run
// again, a bounded number of times (see Attempts), with what is left only. The patch itself stays as it is.
//
// An object that is gone is no error: see Result.Gone. Errors wrap the API server's answer, so
// apierrors.IsConflict, IsInvalid and so on work; a *SizeError says that the object is too large; a
// *FieldError that the patch would make another object of it. A function's error is returned as well.
// The errors of this package never contain content of the object; those of the API server may.
func (p *Patch) Apply(ctx context.Context, c client.Client, obj client.Object, opts ...Option) (Result, error) {
	content, err := p.content()
	if err != nil {
		return Result{Left: p}, err
	}
	if isNil(obj) {
		return Result{Left: content.asPatch()}, errNoReference
	}
	r := &applying{client: c, obj: obj, options: newOptions(c, opts), left: content}
	if err = r.begin(); err == nil {
		err = r.run(ctx)
	}
	if err != nil {
		r.result.Left = r.left.asPatch()
		err = fmt.Errorf("patch %s %s: %w", r.gvk.Kind, client.ObjectKeyFromObject(obj), err)
	}
	r.result.Body = r.body
	if r.result.Gone {
		r.result.Body = nil
	}
	return r.result, err
}

// applying is one call of Apply.
type applying struct {
	options

	client client.Client
	obj    client.Object
	gvk    schema.GroupVersionKind

	body  map[string]any // the freshest that was seen
	typed bool           // body comes from a Go type, see differ
	left  content
	where statusEndpointKind
	// noStatus: the status endpoint said that it does not exist.
	noStatus bool
	result   Result
}

func (r *applying) begin() error {
	var err error
	if r.gvk, err = r.client.GroupVersionKindFor(r.obj); err != nil {
		return fmt.Errorf("find the kind of %T: %w", r.obj, err)
	}
	if r.body, r.typed, err = seenBody(r.obj); err != nil {
		return err
	}
	if r.where = r.endpoint; r.where == statusUnknown {
		r.where = kinds.of(r.gvk)
	}
	if (r.locked || len(r.left.fns) > 0) && versionOf(r.body) == "" {
		return errNoReference
	}
	return nil
}

// run tries until it succeeds, the error is no conflict, or the attempts are used up.
func (r *applying) run(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		err := r.attempt(ctx)
		if len(r.result.Calls) > 0 {
			r.result.Attempts = attempt
		}
		seen := versionOf(r.body)
		if err = r.classify(ctx, err); r.result.Gone || !apierrors.IsConflict(err) || r.locked {
			return err
		}
		if attempt, err = r.renew(ctx, attempt, seen, err); err != nil || r.result.Gone {
			return err
		}
	}
}

// renew waits and reads until there is another version than seen; a cache may lag behind the conflict. Each
// round counts as an attempt. When they are used up it returns the conflict.
func (r *applying) renew(ctx context.Context, attempt int, seen string, conflict error) (int, error) {
	for ; attempt < r.attempts; attempt++ {
		if err := wait(ctx, attempt); err != nil {
			return attempt, errors.Join(conflict, err)
		}
		if versionOf(r.body) == seen {
			if err := r.read(ctx); err != nil || r.result.Gone {
				return attempt, err
			}
		}
		if versionOf(r.body) != seen {
			return attempt, nil
		}
	}
	return attempt, conflict
}

// classify finds the conflicts that look like validation errors: the API server runs the steps of a JSON
// patch before it compares the versions, so a step that does not fit the newer body fails first.
func (r *applying) classify(ctx context.Context, err error) error {
	status := apierrors.APIStatus(nil)
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
		return err
	}
	if details := status.Status().Details; details != nil && (details.Name != "" || len(details.Causes) > 0) {
		return err // names the field
	}
	seen := versionOf(r.body)
	if readErr := r.read(ctx); readErr != nil {
		return errors.Join(err, readErr)
	}
	if r.result.Gone {
		return nil
	}
	if versionOf(r.body) == seen {
		return err
	}
	resource := schema.GroupResource{Group: r.gvk.Group, Resource: r.gvk.Kind}
	return apierrors.NewConflict(resource, r.obj.GetName(), errChanged)
}

// wait spreads those that met at one object.
func wait(ctx context.Context, attempt int) error {
	longest := min(firstWait<<min(attempt, 16), longestWait)
	timer := time.NewTimer(rand.N(longest)) // spreads load, guards nothing
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// attempt sends what is left, in at most two calls.
func (r *applying) attempt(ctx context.Context) error {
	todo, err := r.plan(ctx)
	if err != nil || r.result.Gone || todo.empty() {
		return err
	}
	carry := todo.status && r.where != statusApart
	if todo.main || carry && r.where == statusInBody {
		done, err := r.sendMain(ctx, todo, carry)
		if done || err != nil {
			return err
		}
	}
	if !todo.status {
		return nil
	}
	return r.sendStatus(ctx, todo)
}

// sendMain writes the main resource, with the status if it may go there. true: nothing else is to be sent.
func (r *applying) sendMain(ctx context.Context, todo plan, carry bool) (bool, error) {
	before := r.body
	data, err := r.encode(todo, true, carry)
	if err != nil {
		return true, err
	}
	if err := r.send(ctx, "", data); err != nil || r.result.Gone {
		return true, err
	}
	applied := carry && r.carried(before, todo)
	if applied || !todo.status || r.noStatus || r.endpoint == statusInBody {
		if applied {
			kinds.learn(r.gvk, statusInBody)
		}
		r.warn(todo, true, todo.status)
		r.left = content{}
		return true, nil
	}
	r.warn(todo, true, false)
	r.left = r.left.statusOnly()
	return false, nil
}

// sendStatus writes the status subresource.
func (r *applying) sendStatus(ctx context.Context, todo plan) error {
	data, err := r.encode(todo, false, true)
	if err != nil {
		return err
	}
	err = r.send(ctx, fieldStatus, data)
	switch {
	case apierrors.IsNotFound(err) && r.endpoint == statusApart:
		r.result.Gone = true
		return nil
	case apierrors.IsNotFound(err):
		// Either the object is gone or the subresource does not exist: the main resource knows.
		r.noStatus, r.where = true, statusInBody
		return r.attempt(ctx)
	case err != nil:
		return err
	}
	kinds.learn(r.gvk, statusApart)
	r.warn(todo, false, true)
	r.left = content{}
	return nil
}
