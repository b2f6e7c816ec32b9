// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply/absence"
	"github.com/deployerkit/deployerkit/internal/jsondiff"
)

// isAmbiguous reports whether the API server rejected an object because two items of a list have the same name, or
// because an item needs a name to be told from another one. This happens if another client has changed the key of an
// item, such as the number of a port: server-side apply then adds the item of the manifest beside the changed item.
func isAmbiguous(err error) bool {
	return apierrors.IsInvalid(err) && !absence.IsDenied(err) && slices.ContainsFunc(causesOf(err), func(cause metav1.StatusCause) bool {
		return cause.Type == metav1.CauseTypeFieldValueDuplicate || cause.Type == metav1.CauseTypeFieldValueRequired && strings.HasSuffix(cause.Field, "].name")
	})
}

// decideRekey is called after the error isAmbiguous. It changes the keys of the items back by an update, and then
// applies the manifest, so that the item owns its fields again.
func decideRekey(k known) step {
	k.fault = k.err
	return k.read(func(r rules, k known) step {
		live := k.live
		if live == nil || live.GetUID() != k.UID || !r.isOwn(live, k.Entry) {
			return k.fail(k.fault)
		}
		content, _ := jsondiff.Rekey(live.Object, bodyFor(k).Object).(map[string]any)
		if equality.Semantic.DeepEqual(content, live.Object) {
			return k.fail(k.fault)
		}
		body := &unstructured.Unstructured{Object: content}
		return step{known: k, effect: effectUpdate, body: body, manager: r.owner.Manager(), next: func(r rules, k known) step {
			switch {
			case k.result == resultOK && r.dry:
				return k.landed(r)
			case k.result == resultOK:
				return decideInherit(r, k.at(k.answer))
			case k.result == resultConflict || k.result == resultMismatch:
				return k.wait("changed while it was written")
			}
			return k.fail(k.fault)
		}}
	})
}
