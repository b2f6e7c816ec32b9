// SPDX-License-Identifier: Apache-2.0

// Package readiness reports whether an object of a target cluster is ready and, if not, explains why in one line for
// people. It only looks at the objects that it is given: it has no client, no clock and no state, so the same object
// always gives the same result, and an object that has disappeared is not remembered.
//
// # The default check
//
//	result := readiness.Of(object)
//	if !result.Ready() {
//		log.Info("Not ready", "object", readiness.Name(object), "reason", result.Reason)
//	}
//
// The default check is kstatus (github.com/fluxcd/cli-utils), which knows the built-in kinds and the conditions
// Ready, Reconciling and Stalled of the others. The following rules are added where kstatus is too lenient:
//
//	Service of type LoadBalancer  has an ingress in its status
//	Job                           is complete; a running one is not ready
//	Pod in phase Failed           failed
//	PersistentVolumeClaim Lost    failed
//	APIService                    has condition Available=True
//	StatefulSet with OnDelete     has all replicas ready, of whatever revision
//	ReplicationController         is treated as a ReplicaSet; kstatus does not know the kind
//	condition Ready of an older   does not count
//	  generation
//	custom resource without       is not ready: no controller has reported yet. If its
//	  status                      definition does not say that the status will have
//	                              conditions or observedGeneration, that ends with
//	                              the grace period (see Rules); a kind without the
//	                              subresource status is ready at once
//	custom resource whose status  is ready, but the result says that this is a guess
//	  has neither
//
// Failed means that waiting will probably not help, not that it cannot. A Deployment whose progress deadline has
// passed recovers when the image appears. The default check does not evaluate the conditions Available and Failed of
// custom resources, nor any phase. Use a custom check for those.
//
// Two kinds wait for something that may never happen, so an item that contains nothing else needs disableDefault: a
// PersistentVolumeClaim whose storage class binds on first use, and a Job that is suspended.
//
// # Custom checks
//
//	check, err := readiness.Compile(spec)     // at decoding: a *SpecError names the faulty field
//	result, err := check.Run(ctx, lookup)     // all objects that it selects meet all requirements
//	result, err := check.Of(ctx, object)      // one object only
//
// A requirement compares every value that its JSON path finds. A path that finds nothing fails every operator except
// "!". Numbers are compared by value, so 1 and 1.0 are equal. The values of Secrets never appear in a reason.
package readiness
