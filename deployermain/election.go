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
	// podNamespaceFile is the path of the file that contains the namespace of the pod in which the process runs.
	podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
	// podNamespaceVariable is the environment variable in which Landscaper's charts store the namespace of the pod. It is
	// needed in pods without a token, in which podNamespaceFile does not exist.
	podNamespaceVariable = "MY_POD_NAMESPACE"
)

// setDefaults sets every field that has the zero value to its default.
func (e *Election) setDefaults(args *deployerlib.DeployerArgs, namespace string) {
	e.baseID = cmp.Or(e.ID, getLeaseName(args, namespace))
	e.ID = getShardLeaseName(e.baseID, args.Shard)
	e.Namespace = cmp.Or(e.Namespace, getLeaseNamespace(podNamespaceFile, os.Getenv(podNamespaceVariable)))
	e.LeaseDuration = cmp.Or(e.LeaseDuration, defaultLeaseDuration)
	e.RenewDeadline = cmp.Or(e.RenewDeadline, defaultRenewDeadline)
	e.RetryPeriod = cmp.Or(e.RetryPeriod, defaultRetryPeriod)
}

// getLeaseName returns the name of the lease. If a deployer is deployed several times, with different item selectors,
// namespaces or identities, each deployment gets its own lease, so that the deployments do not wait for each other.
func getLeaseName(args *deployerlib.DeployerArgs, namespace string) string {
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

// getLeaseNamespace returns the namespace of the pod, which it reads from the directory of the pod's token or from the
// environment. Outside a pod, it returns "default".
func getLeaseNamespace(file, variable string) string {
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
	o.LeaderElectionReleaseOnCancel = true // safe, because the manager has stopped by then, and the lock does not release the lease while a call still runs
	o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = &e.LeaseDuration, &e.RenewDeadline, &e.RetryPeriod
}
