// SPDX-License-Identifier: Apache-2.0

package rbac_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"

	. "github.com/onsi/gomega"
)

// call is a request as the audit log has it.
type call struct {
	Verb string
	User struct{ Username string }
	// ObjectRef is nil for requests that are not about a resource, such as discovery.
	ObjectRef *struct{ Resource, Namespace, Name, APIGroup, Subresource string }
	// Annotations contain the authorizer's decision.
	Annotations map[string]string
}

// decision returns the decision of the authorizer: "allow" or "forbid".
func (c *call) decision() string { return c.Annotations["authorization.k8s.io/decision"] }

// right returns the right that the request needs.
func (c *call) right() right {
	r := right{Verb: c.Verb, Group: c.ObjectRef.APIGroup, Resource: c.ObjectRef.Resource, Name: c.ObjectRef.Name, Namespace: c.ObjectRef.Namespace}
	if c.ObjectRef.Subresource != "" {
		r.Resource += "/" + c.ObjectRef.Subresource
	}
	return r
}

// calls are the requests of a user for resources, so far.
func calls(g Gomega, user string) []call {
	body, err := os.ReadFile(auditLog)
	g.Expect(err).NotTo(HaveOccurred())
	var out []call
	for line := range strings.Lines(string(body)) {
		var one call
		if !strings.HasSuffix(line, "\n") {
			break // is being written
		}
		g.Expect(json.Unmarshal([]byte(line), &one)).To(Succeed())
		if one.User.Username == user && one.ObjectRef != nil {
			out = append(out, one)
		}
	}
	return out
}

// refused are the requests of a user that needed a right that it does not have; each once.
func refused(user string) func(Gomega) []string {
	return func(g Gomega) []string {
		out := []string{}
		for _, c := range calls(g, user) {
			if c.decision() != "allow" {
				out = append(out, c.right().String())
			}
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
}

// unused are the rights that no request of a user needed.
func unused(user string, rights []right) func(Gomega) []string {
	return func(g Gomega) []string {
		made := calls(g, user)
		g.Expect(made).NotTo(BeEmpty())
		out := []string{}
		for _, granted := range rights {
			if !slices.ContainsFunc(made, func(c call) bool { return c.decision() == "allow" && granted.covers(c.right()) }) {
				out = append(out, granted.String())
			}
		}
		return out
	}
}

// right is one verb for one resource.
type right struct{ Verb, Group, Resource, Namespace, Name string }

// String returns the right in the form "patch deployitems/status.landscaper.gardener.cloud".
func (r right) String() string {
	text := r.Verb + " " + r.Resource
	if r.Group != "" {
		text += "." + r.Group
	}
	return text
}

// covers reports whether the right is sufficient for a request. Without namespace or name it applies to all of them.
func (r right) covers(needed right) bool {
	return r.String() == needed.String() && (r.Namespace == "" || r.Namespace == needed.Namespace) && (r.Name == "" || r.Name == needed.Name)
}
