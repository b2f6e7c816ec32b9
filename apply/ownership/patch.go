// SPDX-License-Identifier: Apache-2.0

package ownership

// FindRemovedMark checks a JSON merge patch. It returns the path of the first field that would remove all labels or all
// annotations of an object, including those of the owner, or that would change managedFields. For example, it returns
// "metadata.labels" for a patch that sets the labels to null. If there is no such field, FindRemovedMark returns "". It
// does not look for single keys; see IsReserved.
func FindRemovedMark(patch map[string]any) string {
	metadata, given := patch["metadata"]
	if !given {
		return ""
	}
	fields, isObject := metadata.(map[string]any)
	if !isObject {
		return "metadata"
	}
	for _, field := range []string{"labels", "annotations"} {
		value, given := fields[field]
		if _, isObject := value.(map[string]any); given && !isObject {
			return "metadata." + field
		}
	}
	if _, given := fields["managedFields"]; given {
		return "metadata.managedFields"
	}
	return ""
}
