// SPDX-License-Identifier: Apache-2.0

// Package controlplane gives tests and demos a real Kubernetes control plane without a cluster:
// etcd, kube-apiserver and, when asked for, kube-controller-manager, with Landscaper's custom
// resource definitions installed.
//
//	cp, err := controlplane.Start(ctx, controlplane.Options{ControllerManager: true})
//	if err != nil { … }
//	defer cp.Stop()
//	c, err := client.New(cp.Config, client.Options{})
//
// # Where the binaries come from
//
// Start asks Assets, which looks in this order and takes the first place that has all it needs:
//
//  1. the directory named by the environment variable KUBEBUILDER_ASSETS
//  2. our cache, deployerkit/ below os.UserCacheDir()
//  3. /usr/local/kubebuilder/bin, where kubebuilder's instructions install the envtest binaries
//  4. a download of the prebuilt envtest binaries (probed for at most 5 seconds; they have no
//     kube-controller-manager, so this place is passed over when one is needed)
//  5. a build from Go modules: needs only the go command and a module proxy
//
// The environment variable DEPLOYERKIT_ENVTEST_INDEX is the address of a mirror of the list of the envtest
// releases (envtest-releases.yaml); its links may be relative to it. If it is set, /usr/local/kubebuilder/bin
// is passed over.
//
// The build of etcd and kube-apiserver takes about three minutes on two cores, once, after a build of this
// library: it compiles only the packages that the library does not have. That with kube-controller-manager
// takes about seven minutes. Both show their progress. Two processes that need one at the same time share
// one build. The recipes (go.mod, go.sum and main.go, pinned) are embedded in this package, so that importers
// of DeployerKit can build them too.
//
// # What to know when writing tests
//
//   - The first create of a custom resource within two seconds of its definition waits two seconds.
//   - Definitions go in before kube-controller-manager starts, as Start does it. Garbage collection of
//     the dependents of a kind that came later takes 41 seconds.
//   - There is no scheduler and no kubelet: a Deployment gets ReplicaSets and Pod objects, and nothing
//     runs. A test that needs ready pods writes their status.
//   - A namespace takes at least five seconds to go.
//   - StopAPIServer and StartAPIServer let the API server vanish and come back with all its data.
//     StopEtcd and StartEtcd do the same to its database. BackUpEtcd and RestoreEtcd take it back to an earlier state.
package controlplane
