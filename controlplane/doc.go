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
//  3. /usr/local/kubebuilder/bin, where kubebuilder's instructions install the envtest binaries
//  4. a download of the prebuilt envtest binaries (tried for at most 5 seconds; they do not include
//     kube-controller-manager, so this place is skipped if it is required)
//  5. a build from Go modules, which needs only the go command and a module proxy
//
// The environment variable DEPLOYERKIT_ENVTEST_INDEX is the address of a mirror of the list of the envtest releases,
// envtest-releases.yaml. Its links may be relative to it. If it is set, /usr/local/kubebuilder/bin is skipped.
//
// The build of etcd and kube-apiserver takes about three minutes on two cores, once. It compiles only the packages
// that this library does not have; the others are in the build cache if the library was compiled before. The build with
// kube-controller-manager takes about seven minutes. Both show their progress. Two processes that need one at the same
// time share one build. The pinned recipes (go.mod, go.sum and main.go) are embedded in this package, so that modules
// that import DeployerKit can build them too.
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
