// SPDX-License-Identifier: Apache-2.0

package deployer

import (
	"fmt"
	"hash/fnv"
	"os"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/deployerkit/deployerkit/deployerlib"
)

// podNamespaceFile holds the namespace of the pod that a process runs in.
const podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// setID chooses the lease: deployments of one deployer that share the items
// between them, by selector, by namespace or under identities of their own, must
// not wait for each other.
func (e *election) setID(args deployerlib.DeployerArgs, itemSelector, namespace string) {
	if e.id != "" {
		return
	}
	e.id = args.Name
	if args.Identity != "" || itemSelector != "" || namespace != "" {
		h := fnv.New32a()
		fmt.Fprintf(h, "%q %q", args.Identity, itemSelector)
		if namespace != "" {
			fmt.Fprintf(h, " %q", namespace)
		}
		e.id = fmt.Sprintf("%s-%08x", args.Name, h.Sum32())
	}
}

// leaseNamespace is where the lease lies: what the flag says, the namespace of
// the pod, or "default".
func (e *election) leaseNamespace(podNamespaceFile string) string {
	if e.namespace != "" {
		return e.namespace
	}
	if ns, err := os.ReadFile(podNamespaceFile); err == nil && len(strings.TrimSpace(string(ns))) > 0 { //nolint:gosec // a constant, or a test's file
		return strings.TrimSpace(string(ns))
	}
	return "default"
}

// applyTo puts the election on the manager that runs the controller: losing
// the lease must stop that one. The lease is not released at the end, it runs
// out: a call that outlives its grace period would work beside the next leader.
func (e *election) applyTo(o *manager.Options) {
	o.LeaderElection = e.enabled
	o.LeaderElectionID = e.id
	o.LeaderElectionNamespace = e.leaseNamespace(podNamespaceFile)
	o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = &e.leaseDuration, &e.renewDeadline, &e.retryPeriod
}
