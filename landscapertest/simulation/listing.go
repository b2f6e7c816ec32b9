// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// selection decides which objects a list or watch contains.
type selection struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

// parseSelection parses the selectors of a list or watch.
func parseSelection(namespace string, query url.Values) (selection, error) {
	sel := selection{namespace: namespace}
	var err error
	if sel.labels, err = labels.Parse(query.Get("labelSelector")); err != nil {
		return sel, apierrors.NewBadRequest(err.Error())
	}
	if sel.fields, err = fields.ParseSelector(query.Get("fieldSelector")); err != nil {
		return sel, apierrors.NewBadRequest(err.Error())
	}
	for _, requirement := range sel.fields.Requirements() {
		if requirement.Field != "metadata.name" && requirement.Field != "metadata.namespace" {
			return sel, apierrors.NewBadRequest(fmt.Sprintf("%q is not a known field selector: only \"metadata.name\", \"metadata.namespace\"", requirement.Field))
		}
	}
	return sel, nil
}

// matches reports whether an object is selected. It returns false for nil.
func (sel selection) matches(obj object) bool {
	return obj != nil && (sel.namespace == "" || sel.namespace == obj.GetNamespace()) && sel.labels.Matches(labels.Set(obj.GetLabels())) &&
		sel.fields.Matches(fields.Set{"metadata.name": obj.GetName(), "metadata.namespace": obj.GetNamespace()})
}

// sorted returns the objects of a namespace, or of all namespaces if namespace is empty, sorted by namespace and name.
func (r *resource) sorted(namespace string) []object {
	var keys []objectKey
	for key := range r.objects {
		if namespace == "" || namespace == key.Namespace {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b objectKey) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	found := make([]object, len(keys))
	for i, key := range keys {
		found[i] = r.objects[key]
	}
	return found
}

// page is the rest of a list of which the client has received the first pages.
type page struct {
	id      string
	version int64
	objects []object
}

// maxPages is the maximum number of lists that clients can continue at the same time. The oldest ones expire.
const maxPages = 16

// handleList lists objects. The caller holds the lock.
func (s *Server) handleList(req *http.Request, r *resource, by *Request) (*http.Response, error) {
	query := req.URL.Query()
	sel, err := parseSelection(by.Namespace, query)
	if err != nil {
		return nil, err
	}
	list := &page{version: s.version}
	if id := query.Get("continue"); id != "" {
		i := slices.IndexFunc(s.pages, func(p *page) bool { return p.id == id })
		if i < 0 {
			return nil, apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result.")
		}
		list = s.pages[i]
		s.pages = slices.Delete(s.pages, i, i+1)
	} else {
		for _, obj := range r.sorted(by.Namespace) {
			if sel.matches(obj) {
				list.objects = append(list.objects, obj)
			}
		}
	}
	return s.respondWithPage(req, r, list)
}

// respondWithPage responds with the next objects of a list, and keeps the rest.
func (s *Server) respondWithPage(req *http.Request, r *resource, list *page) (*http.Response, error) {
	metadata := map[string]any{"resourceVersion": strconv.FormatInt(list.version, 10)}
	objects := list.objects
	limit, err := strconv.Atoi(cmp.Or(req.URL.Query().Get("limit"), "0"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if limit > 0 && len(objects) > limit {
		s.pageID++
		rest := &page{id: strconv.Itoa(s.pageID), version: list.version, objects: objects[limit:]}
		s.pages = append(s.pages, rest)
		if len(s.pages) > maxPages {
			s.pages = s.pages[1:]
		}
		objects = objects[:limit]
		metadata["continue"] = rest.id
	}
	items := []any{}
	for _, obj := range objects {
		items = append(items, convert(req, obj))
	}
	apiVersion, kind := r.GroupVersion().String(), r.Kind.Kind+"List"
	if wantsMetadata(req) {
		apiVersion, kind = "meta.k8s.io/v1", "PartialObjectMetadataList"
	}
	return newResponse(req, http.StatusOK, map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata, "items": items})
}
