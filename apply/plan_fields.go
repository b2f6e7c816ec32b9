// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/internal/redact"
)

// longestValue limits how much of one value is shown.
const longestValue = 200

// bookkeeping lists the fields that the API server writes by itself.
var bookkeeping = []string{".metadata.managedFields", ".metadata.resourceVersion", ".metadata.generation", ".status"}

// fields returns the differences between two versions of one object.
func (r *run) fields(ref Ref, old, now *unstructured.Unstructured) []FieldChange {
	d := &differing{hide: r.hide, secret: ref.isSecret()}
	d.walk("", old.Object, now.Object)
	return d.out
}

// differing collects the differences of one object.
type differing struct {
	hide   *redact.Redactor
	secret bool
	out    []FieldChange
}

func (d *differing) walk(path string, old, now any) {
	if slices.Contains(bookkeeping, path) || equality.Semantic.DeepEqual(old, now) {
		return
	}
	below, isMap := old.(map[string]any)
	above, isToo := now.(map[string]any)
	if isMap && isToo {
		both := maps.Clone(below)
		maps.Copy(both, above)
		for _, key := range slices.Sorted(maps.Keys(both)) {
			d.walk(path+step(key), below[key], above[key])
		}
		return
	}
	olds, isList := old.([]any)
	news, isToo := now.([]any)
	if isList && isToo && len(olds) == len(news) {
		for i := range olds {
			d.walk(fmt.Sprintf("%s[%d]", path, i), olds[i], news[i])
		}
		return
	}
	d.out = append(d.out, FieldChange{Path: path, Old: d.show(path, old), New: d.show(path, now)})
}

// step returns a part of a path. Keys with dots or slashes are quoted.
func step(key string) string {
	if strings.ContainsAny(key, "./") {
		return fmt.Sprintf("[%q]", key)
	}
	return "." + key
}

// show formats a value. It hides the data and the annotations of a Secret, because kubectl keeps a copy of the data
// in an annotation.
func (d *differing) show(path string, value any) string {
	if value == nil {
		return ""
	}
	if d.secret && (strings.HasPrefix(path, ".data") || strings.HasPrefix(path, ".metadata.annotations")) {
		return redact.Mask
	}
	data, err := json.Marshal(value)
	if err != nil {
		return redact.Mask
	}
	text := clean(d.hide, string(data))
	if runes := []rune(text); len(runes) > longestValue {
		text = string(runes[:longestValue]) + "…"
	}
	return text
}
