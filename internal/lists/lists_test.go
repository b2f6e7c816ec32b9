// SPDX-License-Identifier: Apache-2.0

package lists

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFlatten(t *testing.T) {
	for name, tc := range map[string]struct {
		in   string
		want string // path, API version, kind and name of each object, or the error
	}{
		"an object stays an object":                                                      {`{"kind":"A","metadata":{"name":"a"}}`, "= A a"},
		"a list without items has no objects":                                            {`{"kind":"List","items":[]}`, ""},
		"items of a List keep their kinds":                                               {`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"x/v1","kind":"A"},{"apiVersion":"v1","kind":"B"}]}`, ".items[0]=x/v1 A;.items[1]=v1 B"},
		"items without a kind get the kind of the list, like in kubectl [F102]":          {`{"apiVersion":"x/v1","kind":"PodList","items":[{"metadata":{"name":"a"}},{"kind":"","apiVersion":null}]}`, ".items[0]=x/v1 Pod a;.items[1]=x/v1 Pod"},
		"the kind of the list need not end with List [F102]":                             {`{"apiVersion":"x/v1","kind":"Menu","items":[{}]}`, ".items[0]=x/v1 Menu"},
		"a List says nothing about the kinds of its items [F102]":                        {`{"apiVersion":"v1","kind":"List","items":[{"metadata":{"name":"a"}}]}`, ".items[0]= a"},
		"items with only an apiVersion or a kind are incomplete, like in kubectl [F102]": {`{"apiVersion":"x/v1","kind":"PodList","items":[{"kind":"Pod"},{"apiVersion":"v1"}]}`, ".items[0]=Pod;.items[1]=v1"},
		"lists in lists are flattened in their order [F102]":                             {`{"kind":"List","items":[{"kind":"A"},{"apiVersion":"v1","kind":"PodList","items":[{},{"kind":"List","items":[{"kind":"B"}]}]},{"kind":"C"}]}`, ".items[0]=A;.items[1].items[0]=v1 Pod;.items[1].items[1].items[0]=B;.items[2]=C"},
		"an item that is not an object is an error with its place":                       {`{"kind":"List","items":[{"kind":"List","items":[{},null]}]}`, "items[0].items[1] must be an object"},
		"lists that are nested without end are an error":                                 {strings.Repeat(`{"items":[`, MaxDepth+1) + strings.Repeat("]}", MaxDepth+1), "lists are nested more than 10 levels deep"},
		"lists may be nested up to the limit":                                            {strings.Repeat(`{"items":[`, MaxDepth) + strings.Repeat("]}", MaxDepth), ""},
		"an object whose items are not an array is not a list":                           {`{"kind":"A","items":{"kind":"B"}}`, "=A"},
	} {
		t.Run(name, func(t *testing.T) {
			in := map[string]any{}
			if err := json.Unmarshal([]byte(tc.in), &in); err != nil {
				t.Fatal(err)
			}
			items, err := Flatten(in, nil)
			var got []string
			for _, item := range items {
				text := func(fields map[string]any, key string) string { value, _ := fields[key].(string); return value }
				metadata, _ := item.Body["metadata"].(map[string]any)
				words := []string{text(item.Body, "apiVersion"), text(item.Body, "kind"), text(metadata, "name")}
				got = append(got, item.Path+"="+strings.Join(strings.Fields(strings.Join(words, " ")), " "))
			}
			found := strings.Join(got, ";")
			if err != nil {
				found = err.Error()
			}
			if diff := cmp.Diff(strings.ReplaceAll(tc.want, "= ", "="), found); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			before := map[string]any{}
			if err := json.Unmarshal([]byte(tc.in), &before); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, in); diff != "" {
				t.Errorf("the argument was changed: %s", diff)
			}
		})
	}
}
