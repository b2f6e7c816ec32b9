// SPDX-License-Identifier: Apache-2.0

package faults_test

// replicaEnv names the kubeconfig for a replica.
const replicaEnv = "FAULTS_REPLICA_KUBECONFIG"

func replicaMain(string) int { return 1 }
