// SPDX-License-Identifier: Apache-2.0

// Package deployer is the program around a deployer: flags, configuration
// file, clients, managers, leader election and signals. The mains of this
// module are a few lines on top of it.
//
//	func main() {
//		os.Exit(deployer.Main(deployer.Program{Name: "mock-deployer", Args: args}))
//	}
//
// With nothing but --kubeconfig a deployer runs outside a cluster; in a
// cluster it needs no flag at all.
package deployer
