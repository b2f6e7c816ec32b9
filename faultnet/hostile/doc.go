// SPDX-License-Identifier: Apache-2.0

// Package hostile provides a Kubernetes API server that behaves badly, for tests. By default, the server behaves like a
// small API server. Each Behaviour changes how it responds. A test can use the server to show how one bad target
// affects a deployer and the deployer's other targets. The package does not depend on Landscaper, and can be used to
// test any client.
//
//	server := hostile.New(
//		hostile.When(hostile.IsWatch, hostile.WatchExpired()),
//		hostile.When(hostile.HasName("big"), hostile.Gzip(), hostile.LargeObject(120<<20)),
//	)
//	defer server.Close()
//	kubeconfig := server.Kubeconfig("token")
package hostile
