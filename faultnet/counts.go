// SPDX-License-Identifier: Apache-2.0

package faultnet

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Counts maps each Request to the number of times that it was made. It contains no zeros.
type Counts map[Request]int

// Since returns the counts of the requests that were made after the snapshot `before`.
func (c Counts) Since(before Counts) Counts {
	return c.filter(func(r Request) int { return c[r] - before[r] })
}

// ForObject returns the counts of the requests about one object.
func (c Counts) ForObject(resource, namespace, name string) Counts {
	return c.filter(func(r Request) int {
		if r.Resource != resource || r.Namespace != namespace || r.Name != name {
			return 0
		}
		return c[r]
	})
}

// OnlyReads returns the counts of the get and list requests.
func (c Counts) OnlyReads() Counts {
	return c.filter(func(r Request) int { return c.countIf(r, r.isRead()) })
}

// OnlyWrites returns the counts of all requests that may change something.
func (c Counts) OnlyWrites() Counts {
	return c.filter(func(r Request) int { return c.countIf(r, !r.isRead()) })
}

// countIf returns the count of r if ok is true, and zero otherwise.
func (c Counts) countIf(r Request, ok bool) int {
	if !ok {
		return 0
	}
	return c[r]
}

// filter calls f for each Request, and returns the results that are not zero as new counts.
func (c Counts) filter(f func(Request) int) Counts {
	out := Counts{}
	for r := range c {
		if n := f(r); n != 0 {
			out[r] = n
		}
	}
	return out
}

// Sum returns the number of all requests.
func (c Counts) Sum() int {
	total := 0
	for _, n := range c {
		total += n
	}
	return total
}

// String returns a sorted list of the counts, one per line, for example "2 patch deployitems/status ns/name".
func (c Counts) String() string {
	lines := make([]string, 0, len(c))
	for r, n := range maps.All(c) {
		resource := strings.TrimSuffix(r.Resource+"/"+r.Subresource, "/")
		object := strings.Trim(r.Namespace+"/"+r.Name, "/")
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%d %s %s %s", n, r.Verb, resource, object)))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
