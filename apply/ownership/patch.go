// SPDX-License-Identifier: Apache-2.0

package ownership

// Unmarks returns the field of a JSON merge patch that would remove the marks of its owner from an object, such as
// "metadata.labels" if that is null. It returns "" if there is none. Keys with Prefix are left to IsReserved.
func Unmarks(patch map[string]any) string {
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
