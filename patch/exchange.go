// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// send makes one call and takes over what it returns: raw, since no Go type shows what was left out. A main
// resource that is not there is gone; whether the status tells the same is the caller's to judge.
func (r *applying) send(ctx context.Context, subresource string, p client.Patch) error {
	answer := r.raw()
	data, err := p.Data(answer)
	if err != nil {
		return fmt.Errorf("read patch: %w", err)
	}
	if subresource == "" {
		err = r.client.Patch(ctx, answer, p, r.patchOptions()...)
	} else {
		err = r.client.SubResource(subresource).Patch(ctx, answer, p, r.subresourceOptions()...)
	}
	r.result.Calls = append(r.result.Calls, Call{Subresource: subresource, Type: p.Type(), Bytes: len(data), Err: err})
	if subresource == "" && apierrors.IsNotFound(err) {
		r.result.Gone = true
		return nil
	}
	if err != nil {
		return explain(err)
	}
	held := len(r.obj.GetFinalizers()) > 0
	if err := r.take(answer); err != nil {
		return err
	}
	r.result.Gone = held && isReleased(r.obj) && !isGraceful(r.obj)
	return nil
}

// read gets the freshest body.
func (r *applying) read(ctx context.Context) error {
	fresh := r.raw()
	r.result.Reads++
	err := r.reader.Get(ctx, client.ObjectKeyFromObject(r.obj), fresh)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("read: %w", err)
	}
	// Another object of the same name is not the one that the patch was made for.
	if err != nil || r.obj.GetUID() != "" && fresh.GetUID() != r.obj.GetUID() {
		r.result.Gone = true
		return nil
	}
	return r.take(fresh)
}

func (r *applying) raw() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(r.gvk)
	u.SetNamespace(r.obj.GetNamespace())
	u.SetName(r.obj.GetName())
	return u
}

func (r *applying) take(fresh *unstructured.Unstructured) error {
	body, err := normal(fresh.Object)
	if err != nil {
		return err
	}
	r.body, r.typed = body, false
	return setBody(r.obj, body)
}

func (r *applying) patchOptions() []client.PatchOption {
	if r.owner == "" {
		return nil
	}
	return []client.PatchOption{r.owner}
}

func (r *applying) subresourceOptions() []client.SubResourcePatchOption {
	if r.owner == "" {
		return nil
	}
	return []client.SubResourcePatchOption{r.owner}
}

// isGraceful tells that a terminating object stays for a while without any finalizer, as pods do.
func isGraceful(obj client.Object) bool {
	seconds := obj.GetDeletionGracePeriodSeconds()
	return seconds != nil && *seconds > 0
}

// carried tells that the main resource took the status: the kind has no status subresource.
func (r *applying) carried(before map[string]any, todo plan) bool {
	if !todo.locked {
		return equal(r.body[fieldStatus], applyMerge(r.body, r.left.changes)[fieldStatus])
	}
	after := r.body
	if todo.typed {
		seen, _, err := seenBody(r.obj)
		if err != nil {
			return false
		}
		after = seen
	}
	return !equal(before[fieldStatus], after[fieldStatus])
}

// warn notes what was sent and is not in the answer.
func (r *applying) warn(todo plan, main, status bool) {
	for _, path := range missing("", part(todo.base, main, status), part(todo.wanted, main, status), r.body) {
		r.result.Warnings = append(r.result.Warnings, path+" was not stored: the API server left it out, as it does with fields that it does not know")
	}
}
