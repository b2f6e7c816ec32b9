// SPDX-License-Identifier: Apache-2.0

// Package deployermain implements the main function of a deployer: flags, configuration file, kubeconfigs, managers,
// leader election, probes, metrics, logs and signals.
//
//	func main() {
//		deployermain.Run(deployermain.Program{
//			Short: "Makes a password for each deploy item",
//			Args:  deployerlib.DeployerArgs{Name: "password-deployer", Type: "example.org/password", Deployer: &passwords{}},
//		})
//	}
//
// In a cluster, the program needs no flags. Outside a cluster, it needs at most --kubeconfig. It accepts the flags, the
// environment variables and the configuration file that Landscaper's charts set for its own deployers.
//
// [NewManagers] returns managers with the same settings, for programs that have their own main function.
package deployermain
