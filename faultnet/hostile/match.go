// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"net/http"
	"strings"
)

// MatchAll matches every request.
func MatchAll(*http.Request) bool { return true }

// IsWatch matches the requests that open a watch.
func IsWatch(r *http.Request) bool {
	watch := r.URL.Query().Get("watch")
	return r.Method == http.MethodGet && (watch == "true" || watch == "1")
}

// IsDiscovery matches discovery requests.
func IsDiscovery(r *http.Request) bool {
	parts := splitPath(r.URL.Path)
	return len(parts) > 0 && (parts[0] == "api" && len(parts) <= 2 || parts[0] == "apis" && len(parts) <= 3)
}

// IsList matches the requests that list objects.
func IsList(r *http.Request) bool {
	return r.Method == http.MethodGet && !IsWatch(r) && !IsDiscovery(r) && parsePath(r.URL.Path).name == "" && parsePath(r.URL.Path).resource != ""
}

// IsGet matches the requests that get a single object.
func IsGet(r *http.Request) bool {
	return r.Method == http.MethodGet && parsePath(r.URL.Path).name != ""
}

// IsWrite matches the requests that change something.
func IsWrite(r *http.Request) bool { return r.Method != http.MethodGet && r.Method != http.MethodHead }

// HasName matches the requests that concern an object with the given name.
func HasName(name string) Match {
	return func(r *http.Request) bool { return parsePath(r.URL.Path).name == name }
}

// Not matches all requests except those that `match` matches.
func Not(match Match) Match { return func(r *http.Request) bool { return !match(r) } }

// location is the location of an object or a collection: the parts of its URL path.
type location struct{ prefix, namespace, resource, name string }

func splitPath(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

// parsePath parses a URL path. It returns the zero value if the path identifies neither an object nor a collection.
func parsePath(path string) location {
	parts := splitPath(path)
	var p location
	switch {
	case len(parts) > 2 && parts[0] == "api":
		p.prefix, parts = "/api/"+parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		p.prefix, parts = "/apis/"+parts[1]+"/"+parts[2], parts[3:]
	default:
		return location{}
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
