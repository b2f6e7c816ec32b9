// SPDX-License-Identifier: Apache-2.0

// Package hostile provides a hostile Kubernetes API server for tests. It behaves like a small API server until a
// Behaviour says otherwise, so that a test can see what one bad target does to a deployer, and to its other targets. It
// knows nothing of Landscaper and can test any client.
//
//	server := hostile.New(
//		hostile.When(hostile.Watches, hostile.Expired()),
//		hostile.When(hostile.Named("big"), hostile.Huge(120<<20), hostile.Gzip()),
//	)
//	defer server.Close()
//	kubeconfig := server.Kubeconfig("token")
package hostile
