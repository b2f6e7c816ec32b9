// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"net/http"
	"strings"
)

// All matches every request.
func All(*http.Request) bool { return true }

// Watches matches the requests that open a watch.
func Watches(r *http.Request) bool {
	watch := r.URL.Query().Get("watch")
	return r.Method == http.MethodGet && (watch == "true" || watch == "1")
}

// Discovery matches the requests for groups and kinds.
func Discovery(r *http.Request) bool {
	parts := split(r.URL.Path)
	return len(parts) > 0 && (parts[0] == "api" && len(parts) <= 2 || parts[0] == "apis" && len(parts) <= 3)
}

// Lists matches the requests that list objects.
func Lists(r *http.Request) bool {
	return r.Method == http.MethodGet && !Watches(r) && !Discovery(r) && locate(r.URL.Path).name == "" && locate(r.URL.Path).resource != ""
}

// Reads matches the requests for one object.
func Reads(r *http.Request) bool { return r.Method == http.MethodGet && locate(r.URL.Path).name != "" }

// Writes matches the requests that change something.
func Writes(r *http.Request) bool { return r.Method != http.MethodGet && r.Method != http.MethodHead }

// Named matches the requests about objects with the given name.
func Named(name string) Match {
	return func(r *http.Request) bool { return locate(r.URL.Path).name == name }
}

// Not matches the requests that match does not.
func Not(match Match) Match { return func(r *http.Request) bool { return !match(r) } }

// place identifies an object by its path.
type place struct{ prefix, namespace, resource, name string }

func split(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

// locate parses the path of a request. It returns the zero value if the request is not about an object.
func locate(path string) place {
	parts := split(path)
	var p place
	switch {
	case len(parts) > 2 && parts[0] == "api":
		p.prefix, parts = "/api/"+parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		p.prefix, parts = "/apis/"+parts[1]+"/"+parts[2], parts[3:]
	default:
		return place{}
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		p.namespace, parts = parts[1], parts[2:]
	}
	p.resource = parts[0]
	if len(parts) > 1 {
		p.name = parts[1]
	}
	return p
}
