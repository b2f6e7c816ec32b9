// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"os"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/deployerkit/deployerkit/deployerlib"
)

const (
	// podNamespaceFile holds the namespace of the pod that a process runs in.
	podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
	// podNamespaceVariable does so in pods without a token, by a convention of Landscaper's charts.
	podNamespaceVariable = "MY_POD_NAMESPACE"
)

// setDefaults fills in every zero value that has a default.
func (e *Election) setDefaults(args *deployerlib.DeployerArgs, namespace string) {
	e.ID = cmp.Or(e.ID, leaseName(args, namespace))
	e.Namespace = cmp.Or(e.Namespace, leaseNamespace(podNamespaceFile, os.Getenv(podNamespaceVariable)))
	e.LeaseDuration = cmp.Or(e.LeaseDuration, defaultLeaseDuration)
	e.RenewDeadline = cmp.Or(e.RenewDeadline, defaultRenewDeadline)
	e.RetryPeriod = cmp.Or(e.RetryPeriod, defaultRetryPeriod)
}

// leaseName chooses the lease: deployments of one deployer that share the items between them, by selector, by namespace
// or under identities of their own, must not wait for each other.
func leaseName(args *deployerlib.DeployerArgs, namespace string) string {
	identity, itemSelector := args.Identity, ""
	if identity == args.Name {
		identity = ""
	}
	if args.ItemSelector != nil {
		itemSelector = args.ItemSelector.String()
	}
	if identity == "" && itemSelector == "" && namespace == "" {
		return args.Name
	}
	h := fnv.New32a()
	fmt.Fprintf(h, "%q %q", identity, itemSelector)
	if namespace != "" {
		fmt.Fprintf(h, " %q", namespace)
	}
	return fmt.Sprintf("%s-%08x", args.Name, h.Sum32())
}

// leaseNamespace is the namespace of the pod, from the mount of its token or from the environment, or "default".
func leaseNamespace(file, variable string) string {
	if namespace, err := os.ReadFile(file); err == nil && len(strings.TrimSpace(string(namespace))) > 0 { //nolint:gosec // a constant, or a test's file
		return strings.TrimSpace(string(namespace))
	}
	return cmp.Or(variable, "default")
}

// applyTo puts the election on the manager that runs the controller: losing the lease must stop that one.
func (e *Election) applyTo(o *manager.Options, l *lock) {
	o.LeaderElection, o.LeaderElectionID = true, e.ID
	o.LeaderElectionResourceLockInterface = l
	o.LeaderElectionReleaseOnCancel = true // the manager has stopped by then; calls that still run are the lock's concern
	o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = &e.LeaseDuration, &e.RenewDeadline, &e.RetryPeriod
}
