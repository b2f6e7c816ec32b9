// SPDX-License-Identifier: Apache-2.0

package patching

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options configures Apply.
type Options struct {
	// Locked applies the content to exactly the given version, without a retry.
	Locked bool
	// Attempts is the maximum number of attempts when there are conflicts. If it is less than one, it is 10.
	Attempts int
	// Reader reads the object. If it is nil, the client that writes is used.
	Reader client.Reader
	// Endpoint is the endpoint of the status.
	Endpoint StatusEndpoint
}

// Result is what Apply did, including after an error. See package patch.
type Result struct {
	Calls    []Call
	Attempts int
	Reads    int
	Body     map[string]any
	Gone     bool
	Warnings []string
	Left     Content
}

func (r *Result) note(w write, contentType types.PatchType, size int, err error) {
	r.Calls = append(r.Calls, Call{Subresource: w.subresource, Type: contentType, Bytes: size, Err: err})
}

// isWriteOnly reports whether the API server accepts a field but never returns it.
func isWriteOnly(kind schema.GroupVersionKind, path string) bool {
	return kind.Group == "" && kind.Kind == "Secret" && path == "stringData"
}

// missing returns the paths of changes from base to wanted that are not in answer. A zero value need not be stored. A
// value that became another one, because of defaults or admission, is not missing.
func missing(path string, base, wanted, answer map[string]any) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		want := wanted[key]
		at := joinPath(path, pathElement(key))
		have, existed := base[key]
		stored, exists := answer[key]
		switch {
		case existed && Equal(have, want) || IsZero(want):
		case !exists:
			out = append(out, at)
		default:
			out = append(out, missingBelow(at, have, want, stored)...)
		}
	}
	return out
}

func missingBelow(path string, base, want, stored any) []string {
	switch wanted := want.(type) {
	case map[string]any:
		have, _ := base.(map[string]any)
		if answer, ok := stored.(map[string]any); ok {
			return missing(path, have, wanted, answer)
		}
	case []any:
		answer, ok := stored.([]any)
		if !ok || len(answer) != len(wanted) {
			return nil // others may have changed it, so items cannot be compared
		}
		var out []string
		for i := range wanted {
			out = append(out, missingBelow(joinPath(path, fmt.Sprintf("[%d]", i)), nil, wanted[i], answer[i])...)
		}
		return out
	}
	return nil
}
