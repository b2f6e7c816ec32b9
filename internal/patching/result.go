// SPDX-License-Identifier: Apache-2.0

package patching

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/internal/jsondiff"
)

// Options configures Apply.
type Options struct {
	// Locked makes Apply change only the version of the object that was passed to it. After a conflict, Apply does not
	// retry.
	Locked bool
	// Attempts is the maximum number of attempts if there are conflicts. If it is less than one, the default of 10 is
	// used.
	Attempts int
	// Reader reads the object. If it is nil, the client that writes is used.
	Reader client.Reader
	// Endpoint is the endpoint of the status. By default, Apply detects it.
	Endpoint StatusEndpoint
}

// Result describes the calls and the outcome of Apply. It is complete even if Apply returns an error. The fields are
// documented in package patch.
type Result struct {
	Calls    []Call
	Attempts int
	Reads    int
	Body     map[string]any
	Gone     bool
	Warnings []string
	Left     Content
}

func (r *Result) recordCall(w write, contentType types.PatchType, size int, err error) {
	r.Calls = append(r.Calls, Call{Subresource: w.subresource, Type: contentType, Bytes: size, Err: err})
}

// isWriteOnly reports whether the API server accepts a field but never returns it.
func isWriteOnly(kind schema.GroupVersionKind, path string) bool {
	return kind.Group == "" && kind.Kind == "Secret" && path == "stringData"
}

// listMissing returns the paths of values that a write has changed but that the response does not contain. A zero value
// does not count as missing, because the API server need not store it. A value that differs in the response does not
// count either, because defaults or admission may have changed it.
func listMissing(path jsondiff.Path, base, wanted, answer map[string]any) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		want := wanted[key]
		at := slices.Concat(path, jsondiff.Path{key})
		have, existed := base[key]
		stored, exists := answer[key]
		switch {
		case existed && jsondiff.Equal(have, want) || jsondiff.IsZero(want):
		case !exists:
			out = append(out, at.String())
		default:
			out = append(out, listMissingBelow(at, have, want, stored)...)
		}
	}
	return out
}

func listMissingBelow(path jsondiff.Path, base, want, stored any) []string {
	switch wanted := want.(type) {
	case map[string]any:
		have, _ := base.(map[string]any)
		if answer, ok := stored.(map[string]any); ok {
			return listMissing(path, have, wanted, answer)
		}
	case []any:
		answer, ok := stored.([]any)
		if !ok || len(answer) != len(wanted) {
			return nil // another client may have changed the list, so its items cannot be compared
		}
		var out []string
		for i := range wanted {
			out = append(out, listMissingBelow(append(path, i), nil, wanted[i], answer[i])...)
		}
		return out
	}
	return nil
}
