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

// Discovery matches discovery requests.
func Discovery(r *http.Request) bool {
	parts := split(r.URL.Path)
	return len(parts) > 0 && (parts[0] == "api" && len(parts) <= 2 || parts[0] == "apis" && len(parts) <= 3)
}

// Lists matches the requests that list objects.
func Lists(r *http.Request) bool {
	return r.Method == http.MethodGet && !Watches(r) && !Discovery(r) && locate(r.URL.Path).name == "" && locate(r.URL.Path).resource != ""
}

// Reads matches the requests that get a single object.
func Reads(r *http.Request) bool { return r.Method == http.MethodGet && locate(r.URL.Path).name != "" }

// Writes matches the requests that change something.
func Writes(r *http.Request) bool { return r.Method != http.MethodGet && r.Method != http.MethodHead }

// Named matches the requests that concern an object with the given name.
func Named(name string) Match {
	return func(r *http.Request) bool { return locate(r.URL.Path).name == name }
}

// Not matches all requests except those that `match` matches.
func Not(match Match) Match { return func(r *http.Request) bool { return !match(r) } }

// place is the location of an object or a collection: the parts of its URL path.
type place struct{ prefix, namespace, resource, name string }

func split(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

// locate parses a URL path. It returns the zero value if the path identifies neither an object nor a collection.
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
