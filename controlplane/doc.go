// SPDX-License-Identifier: Apache-2.0

// Package controlplane starts a real Kubernetes control plane for tests and demos. The control plane consists of etcd,
// kube-apiserver and, on request, kube-controller-manager. No cluster is needed. Landscaper's custom resource
// definitions are installed by default.
//
//	cp, err := controlplane.Start(ctx, controlplane.Options{ControllerManager: true})
//	if err != nil { … }
//	defer cp.Stop()
//	c, err := client.New(cp.Config, client.Options{})
//
// # Where the binaries come from
//
// Start calls FindAssets, which uses the first of these places that contains all required binaries:
//
//  1. the directory in the environment variable KUBEBUILDER_ASSETS
//  2. the cache, deployerkit/ below os.UserCacheDir()
//  3. /usr/local/kubebuilder/bin, where kubebuilder's instructions install the envtest binaries
//  4. a download of the prebuilt envtest binaries (tried for at most 5 seconds; they do not include
//     kube-controller-manager, so this place is skipped if kube-controller-manager is required)
//  5. a build from Go modules, which needs only the go command and a module proxy
//
// The file envtest-releases.yaml is the list of envtest releases. To use a mirror, set the environment variable
// DEPLOYERKIT_ENVTEST_INDEX to the URL of a copy of this file. The links in the copy may be relative to that URL. If
// the variable is set, /usr/local/kubebuilder/bin is skipped.
//
// The first build of etcd and kube-apiserver on a machine takes about three minutes on two cores. It is faster if this
// library was compiled before, because the build cache then contains many of the packages. The build with
// kube-controller-manager takes about seven minutes. Both builds show their progress. Processes that need the same
// build at the same time share it. The go.mod, go.sum and main.go of each build are embedded in this package.
// Therefore, modules that import DeployerKit can run the builds too.
//
// # What to know when writing tests
//
//   - The first request for a custom resource takes two seconds if its definition was created less than two seconds
//     ago.
//   - Create definitions before kube-controller-manager starts, as Start does. Otherwise, garbage collection of the
//     dependents of a new kind begins only after 41 seconds.
//   - There is no scheduler and no kubelet. kube-controller-manager creates ReplicaSets and Pods for a Deployment, but
//     no container runs. A test that needs ready Pods writes the status of the Pods.
//   - The deletion of a namespace takes at least five seconds.
//   - StopAPIServer and StartAPIServer stop and start the API server, and StopEtcd and StartEtcd stop and start etcd.
//     All data is kept. BackUpEtcd saves the data of etcd, and RestoreEtcd restores it.
package controlplane
