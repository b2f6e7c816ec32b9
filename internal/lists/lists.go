// SPDX-License-Identifier: Apache-2.0

// Package lists reads Kubernetes objects that contain other objects, such as a List or a ConfigMapList.
package lists

import (
	"fmt"
	"maps"
	"strings"
)

// MaxDepth is the maximum number of lists that contain each other.
const MaxDepth = 10

// Item is an object in a list.
type Item struct {
	// Path is the place of the item in the list, such as ".items[2]" or, in a list of lists, ".items[2].items[0]". It is
	// empty if the object is not in a list.
	Path string
	Body map[string]any
}

// IsList reports whether an object has an array "items". Like kubectl, it does not consider the kind.
func IsList(object map[string]any) bool {
	_, isList := object["items"].([]any)
	return isList
}

// Flatten returns the objects in a list and in the lists that it contains. If the object is not a list, Flatten returns
// the object itself. If an item has neither a kind nor an API version, it gets those of the list that contains it, as
// with kubectl: an item of a ConfigMapList is a ConfigMap. Flatten does not modify the object. The function isList
// determines which objects are lists; if it is nil, Flatten uses IsList.
func Flatten(object map[string]any, isList func(map[string]any) bool) ([]Item, error) {
	if isList == nil {
		isList = IsList
	}
	return flatten(Item{Body: object}, isList, 0)
}

func flatten(object Item, isList func(map[string]any) bool, depth int) ([]Item, error) {
	if !isList(object.Body) {
		return []Item{object}, nil
	}
	if depth == MaxDepth {
		return nil, fmt.Errorf("lists are nested more than %d levels deep", MaxDepth)
	}
	items, _ := object.Body["items"].([]any)
	out := make([]Item, 0, len(items))
	for i, item := range items {
		path := fmt.Sprintf("%s.items[%d]", object.Path, i)
		body, isObject := item.(map[string]any)
		if !isObject || body == nil {
			return nil, fmt.Errorf("%s must be an object", strings.TrimPrefix(path, "."))
		}
		below, err := flatten(Item{Path: path, Body: addTypeMeta(body, object.Body)}, isList, depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, below...)
	}
	return out, nil
}

// addTypeMeta returns the item with the kind and the API version that follow from its list, if it has neither.
func addTypeMeta(item, list map[string]any) map[string]any {
	kind, _ := list["kind"].(string)
	kind = strings.TrimSuffix(kind, "List")
	if kind == "" || !isMissing(item["kind"]) || !isMissing(item["apiVersion"]) {
		return item
	}
	out := maps.Clone(item)
	out["kind"], out["apiVersion"] = kind, list["apiVersion"]
	return out
}

func isMissing(value any) bool { return value == nil || value == "" }
