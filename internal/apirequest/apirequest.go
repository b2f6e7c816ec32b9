// SPDX-License-Identifier: Apache-2.0

// Package apirequest parses the URLs of requests to Kubernetes API servers.
package apirequest

import (
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// Request describes a request to an API server that concerns objects.
type Request struct {
	// Verb is get, list, watch, create, update, patch, delete or deletecollection. For an HTTP method that API servers
	// do not support, it is the method in lower case.
	Verb string
	// Group is the API group. It is empty for the core group.
	Group string
	// Namespace is the namespace of the objects. It is empty for cluster-scoped objects, and for requests that concern
	// all namespaces.
	Namespace string
	// Resource and Subresource are spelled as in the URL, for example "deployments" and "status".
	Resource, Subresource string
	// Name is the name of the object. It is empty if the request concerns all objects of a kind, and if Verb is create.
	Name string
}

// Parse returns the description of a request. It returns false if the request does not concern objects, such as a
// discovery request.
func Parse(method string, u *url.URL) (Request, bool) {
	r := Request{}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		r.Group, parts = parts[1], parts[3:]
	default:
		return Request{}, false
	}
	if len(parts) > 2 && parts[0] == "namespaces" && !ofNamespaces[parts[2]] {
		r.Namespace, parts = parts[1], parts[2:]
	}
	for i, to := range []*string{&r.Resource, &r.Name, &r.Subresource} {
		if i < len(parts) {
			*to = parts[i]
		}
	}
	r.Verb = getVerb(method, r.Name != "", u)
	return r, true
}

// ofNamespaces contains the subresources of the resource "namespaces". After the name of a namespace, any other path
// element is a resource in that namespace.
var ofNamespaces = map[string]bool{"status": true, "finalize": true}

// getVerb returns the verb of a request. If the URL contains the name of an object, named is true.
func getVerb(method string, named bool, u *url.URL) string {
	switch method {
	case http.MethodGet, http.MethodHead:
		switch {
		case named:
			return "get"
		case isWatch(u):
			return "watch"
		}
		return "list"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodDelete:
		if !named {
			return "deletecollection"
		}
	}
	return strings.ToLower(method)
}

// isWatch reports whether the query of a list request asks for a watch. It parses the parameter "watch" in the same way
// as an API server.
func isWatch(u *url.URL) bool {
	values := u.Query()["watch"]
	var watches bool
	_ = runtime.Convert_Slice_string_To_bool(&values, &watches, nil) // the conversion never fails
	return watches
}
