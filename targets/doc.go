// SPDX-License-Identifier: Apache-2.0

// Package targets answers two questions about Landscaper's Target objects: is this deployer responsible
// for this Target, and what is the Target's content?
//
// Matches compares a Target with the target selectors of a deployer's configuration; Validate finds
// the faults of such selectors at start-up:
//
//	targetSelector:
//	- labels:                       # all parts of one selector must match …
//	  - {key: landscape, operator: in, values: [dev, canary]}
//	  targets:
//	  - name: cluster-1
//	- annotations:                  # … or all parts of another one
//	  - {key: environment, operator: exists}
//
// Resolver turns a Target into a ResolvedTarget: the inline configuration, or what the referenced
// secret in the Target's namespace holds. Secrets are read live, so the deployer needs no more than
// the right to get them, and at most once per minute and secret. Errors are *ResolveError and never
// contain anything of a secret's content.
//
// The package imports nothing of this module; a deployer that only needs target selection can use it
// alone.
package targets
