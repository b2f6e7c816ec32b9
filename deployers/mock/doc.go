// SPDX-License-Identifier: Apache-2.0

// Package mock implements a deployer that deploys nothing. The configuration of a deploy item determines its status.
// The package is the smallest complete deployer built with deployerlib and serves as an example. In tests of software
// that handles deploy items it can replace a real deployer.
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
// All fields are optional. Decoding is strict: an unknown field, a phase that a deployer cannot set, a providerStatus
// without kind and an invalid schedule end the job with ERR_CONFIGURATION_PROBLEM and the path of the field. The
// condition DeployItemValidation reports the same error.
//
// An item in phase Progressing is called again until its timeout ends the run. Delete removes the export Secret. Abort
// has nothing to stop and deletes nothing, because the export of a job stays valid until the next job. If
// providerStatus or export is removed from a configuration, the values that an earlier configuration wrote stay.
//
// # Using it
//
//	err := deployerlib.Add(log, manager, nil, mock.Args(nil))
package mock
