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
	// podNamespaceFile contains the namespace of the pod in which the process runs.
	podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
	// podNamespaceVariable contains it in pods without a token, by a convention of Landscaper's charts.
	podNamespaceVariable = "MY_POD_NAMESPACE"
)

// setDefaults sets every zero value that has a default.
func (e *Election) setDefaults(args *deployerlib.DeployerArgs, namespace string) {
	e.ID = cmp.Or(e.ID, leaseName(args, namespace))
	e.Namespace = cmp.Or(e.Namespace, leaseNamespace(podNamespaceFile, os.Getenv(podNamespaceVariable)))
	e.LeaseDuration = cmp.Or(e.LeaseDuration, defaultLeaseDuration)
	e.RenewDeadline = cmp.Or(e.RenewDeadline, defaultRenewDeadline)
	e.RetryPeriod = cmp.Or(e.RetryPeriod, defaultRetryPeriod)
}

// leaseName returns the name of the lease. Deployments of one deployer that divide the items by selector, namespace or
// identity get different leases, so that they do not wait for each other.
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

// leaseNamespace returns the namespace of the pod, from the mount of its token or from the environment, or "default".
func leaseNamespace(file, variable string) string {
	if namespace, err := os.ReadFile(file); err == nil && len(strings.TrimSpace(string(namespace))) > 0 { //nolint:gosec // a constant, or a test's file
		return strings.TrimSpace(string(namespace))
	}
	return cmp.Or(variable, "default")
}

// applyTo enables the election for the manager that runs the controller, because losing the lease must stop that
// manager.
func (e *Election) applyTo(o *manager.Options, l *lock) {
	o.LeaderElection, o.LeaderElectionID = true, e.ID
	o.LeaderElectionResourceLockInterface = l
	o.LeaderElectionReleaseOnCancel = true // the manager has stopped by then, and the lock takes care of calls that still run
	o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = &e.LeaseDuration, &e.RenewDeadline, &e.RetryPeriod
}
