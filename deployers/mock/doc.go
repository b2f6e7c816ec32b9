// SPDX-License-Identifier: Apache-2.0

// Package mock is a deployer that deploys nothing: it does to the deploy item
// what the item's configuration says. It is the smallest complete deployer on
// deployerlib, made to be read, and a stand-in for a real one in tests of
// everything that handles deploy items.
//
//	apiVersion: mock.deployer.landscaper.gardener.cloud/v1alpha1
//	kind: ProviderConfiguration
//	phase: Succeeded                # the phase after each call: Succeeded (the default), Progressing or Failed
//	initialPhase: Progressing       # the same, but only for the first call of a job; the phase stays after that
//	providerStatus:                 # copied to status.providerStatus; needs apiVersion and kind
//	  apiVersion: example.com/v1
//	  kind: Status
//	  replicas: 3
//	export:                         # written to a Secret that status.exportRef names
//	  url: https://example.com
//	continuousReconcile:            # reconciled again on a schedule; cron: "0 6 * * *" instead of every
//	  every: 10m
//
// All fields are optional. Decoding is strict: a field that does not exist, a
// phase that a deployer cannot set, a providerStatus without kind and a broken
// schedule end the job with ERR_CONFIGURATION_PROBLEM and the path of the
// field. The condition DeployItemValidation tells the same.
//
// An item in phase Progressing is called again and again until its timeout
// ends it. Delete removes the export Secret. Abort has nothing to stop; it
// deletes nothing, since what a job has exported stays valid until the next
// one. Taking providerStatus or export out of a configuration leaves what an
// earlier one wrote.
//
// # Using it
//
//	err := deployerlib.Add(log, manager, nil, mock.Args(nil))
package mock
