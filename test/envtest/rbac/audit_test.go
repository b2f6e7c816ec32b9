// SPDX-License-Identifier: Apache-2.0

package rbac_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"

	. "github.com/onsi/gomega"
)

// call is a request in the format of the audit log.
type call struct {
	Verb string
	User struct{ Username string }
	// ObjectRef is nil for requests that are not about a resource, such as discovery.
	ObjectRef *struct{ Resource, Namespace, Name, APIGroup, Subresource string }
	// Annotations contain the decision of the authorizer.
	Annotations map[string]string
}

// getDecision returns the decision of the authorizer: "allow" or "forbid".
func (c *call) getDecision() string { return c.Annotations["authorization.k8s.io/decision"] }

// toRight returns the right that the request requires.
func (c *call) toRight() right {
	r := right{Verb: c.Verb, Group: c.ObjectRef.APIGroup, Resource: c.ObjectRef.Resource, Name: c.ObjectRef.Name, Namespace: c.ObjectRef.Namespace}
	if c.ObjectRef.Subresource != "" {
		r.Resource += "/" + c.ObjectRef.Subresource
	}
	return r
}

// readCalls returns the requests for resources that a user has sent so far.
func readCalls(g Gomega, user string) []call {
	body, err := os.ReadFile(auditLog)
	g.Expect(err).NotTo(HaveOccurred())
	var out []call
	for line := range strings.Lines(string(body)) {
		var one call
		if !strings.HasSuffix(line, "\n") {
			break // the last line is not complete yet
		}
		g.Expect(json.Unmarshal([]byte(line), &one)).To(Succeed())
		if one.User.Username == user && one.ObjectRef != nil {
			out = append(out, one)
		}
	}
	return out
}

// listRefused returns a function for Eventually. This function lists the requests of a user that were rejected because
// a right is missing. Equal requests are listed once.
func listRefused(user string) func(Gomega) []string {
	return func(g Gomega) []string {
		out := []string{}
		for _, c := range readCalls(g, user) {
			if c.getDecision() != "allow" {
				out = append(out, c.toRight().String())
			}
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
}

// listUnused returns a function for Eventually. This function lists the rights that no request of a user needed.
func listUnused(user string, rights []right) func(Gomega) []string {
	return func(g Gomega) []string {
		made := readCalls(g, user)
		g.Expect(made).NotTo(BeEmpty())
		out := []string{}
		for _, granted := range rights {
			if !slices.ContainsFunc(made, func(c call) bool { return c.getDecision() == "allow" && granted.covers(c.toRight()) }) {
				out = append(out, granted.String())
			}
		}
		return out
	}
}

// right is one verb for one resource. An empty namespace or name means all namespaces or all names.
type right struct{ Verb, Group, Resource, Namespace, Name string }

// String returns the right in the form "patch deployitems/status.landscaper.gardener.cloud".
func (r right) String() string {
	text := r.Verb + " " + r.Resource
	if r.Group != "" {
		text += "." + r.Group
	}
	return text
}

// covers reports whether the right r is sufficient for a request that needs the right `needed`.
func (r right) covers(needed right) bool {
	return r.String() == needed.String() && (r.Namespace == "" || r.Namespace == needed.Namespace) && (r.Name == "" || r.Name == needed.Name)
}
