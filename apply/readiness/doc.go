// SPDX-License-Identifier: Apache-2.0

// Package readiness reports whether an object of a target cluster is ready and, if not, explains why in one line for
// users. It examines only the objects that the caller passes to it. It has no client, no clock and no state, so the
// same object always gives the same result.
//
// # The default check
//
//	result := readiness.CheckObject(object)
//	if !result.IsReady() {
//		log.Info("Not ready", "object", readiness.FormatName(object), "reason", result.Reason)
//	}
//
// The default check is kstatus (github.com/fluxcd/cli-utils). It evaluates the status of the built-in kinds, and the
// conditions Ready, Reconciling and Stalled of all other kinds. The following rules are added where kstatus is too
// lenient or too strict:
//
//   - A Service of type LoadBalancer is ready when its status contains an ingress.
//   - A Job is ready when it is complete, but not while it is running.
//   - A Pod in phase Failed has failed.
//   - A PersistentVolumeClaim in phase Lost has failed. A claim that is bound only when a Pod uses it is ready before
//     that (see Rules.GetBinding), because the Pod may wait for the claim.
//   - An APIService is ready when it has the condition Available=True.
//   - A StatefulSet with the update strategy OnDelete is ready when all replicas are ready, even if they have an old
//     revision.
//   - A ReplicationController is treated like a ReplicaSet, because kstatus has no rules for ReplicationControllers.
//   - An object is not ready if its condition Ready belongs to an older generation.
//   - A custom resource without a status is not ready, because no controller has reported yet. After a grace period
//     (see Rules) it is ready, because some controllers never write a status, and Result.IsUncertain is set. If its
//     definition declares no status, it is ready at once.
//   - A custom resource whose status contains neither conditions nor observedGeneration is ready, but Result.IsUncertain is
//     set.
//
// The state StateFailed means that waiting will probably not help. Some objects recover nevertheless. For example, a
// Deployment whose progress deadline has passed becomes ready when its image becomes available. For custom resources,
// the default check ignores the conditions Available and Failed, and the field status.phase. Use a custom check to
// evaluate them.
//
// A suspended Job never becomes ready. An item that contains one must disable the default check with disableDefault.
//
// # Custom checks
//
//	check, err := readiness.Compile(spec)     // when the configuration is decoded: a *SpecError names the invalid field
//	result, err := check.Run(ctx, lookup)     // all objects that the check selects must meet all requirements
//	result, err := check.CheckObject(ctx, object) // one object only
//
// A requirement compares every value that its JSON path finds. If the path finds nothing, all operators except "!"
// fail. Numbers are compared by value, so 1 and 1.0 are equal. The values of Secrets never appear in a reason.
package readiness
