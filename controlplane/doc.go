// SPDX-License-Identifier: Apache-2.0

// Package controlplane starts a real Kubernetes control plane without a cluster, for tests and demos: etcd,
// kube-apiserver and, on request, kube-controller-manager, with Landscaper's custom resource definitions installed.
//
//	cp, err := controlplane.Start(ctx, controlplane.Options{ControllerManager: true})
//	if err != nil { … }
//	defer cp.Stop()
//	c, err := client.New(cp.Config, client.Options{})
//
// # Where the binaries come from
//
// Start calls Assets, which uses the first of these places that has all required binaries:
//
//  1. the directory in the environment variable KUBEBUILDER_ASSETS
//  2. the cache, deployerkit/ below os.UserCacheDir()
//  3. a download of the prebuilt envtest binaries (tried for at most 5 seconds; they do not include
//     kube-controller-manager, so this place is skipped if it is required)
//  4. a build from Go modules, which needs only the go command and a module proxy
//
// The build takes about eight minutes on two cores, once, and shows its progress. Two processes that need it at the
// same time share one build. Its pinned recipe (go.mod, go.sum and main.go) is embedded in this package, so that
// modules that import DeployerKit can build it too.
//
// # What to know when writing tests
//
//   - The first create of a custom resource within two seconds of its definition waits two seconds.
//   - Create definitions before kube-controller-manager starts, as Start does. Otherwise garbage collection of the
//     dependents of a new kind begins 41 seconds later.
//   - There is no scheduler and no kubelet. A Deployment gets ReplicaSets and Pod objects, but nothing runs. A test
//     that needs ready pods writes their status.
//   - The deletion of a namespace takes at least five seconds.
//   - StopAPIServer and StartAPIServer stop and start the API server and keep all its data. StopEtcd and StartEtcd do
//     the same with its database. BackUpEtcd and RestoreEtcd restore it to an earlier state.
package controlplane
