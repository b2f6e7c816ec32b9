// SPDX-License-Identifier: Apache-2.0

// Package mock implements a deployer that deploys nothing. It sets the status of a deploy item as the item's
// configuration specifies. The package is the smallest complete deployer that uses deployerlib, and serves as an
// example. It can also replace a real deployer in tests of software that creates deploy items.
//
//	apiVersion: mock.deployer.landscaper.gardener.cloud/v1alpha1
//	kind: ProviderConfiguration
//	phase: Succeeded                # the phase after each call: Succeeded (the default), Progressing or Failed
//	initialPhase: Progressing       # the phase after the first call of a job; later calls of the job do not change it
//	providerStatus:                 # copied to status.providerStatus; needs apiVersion and kind
//	  apiVersion: example.com/v1
//	  kind: Status
//	  replicas: 3
//	export:                         # written to a Secret that status.exportRef names
//	  url: https://example.com
//	continuousReconcile:            # reconciled again on a schedule; cron: "0 6 * * *" instead of every
//	  every: 10m
//
// All fields are optional. A configuration is invalid if it contains an unknown field, a phase that a deployer must not
// set, a providerStatus without kind, or an invalid schedule. The job then ends with the code
// ERR_CONFIGURATION_PROBLEM, and the error contains the path of the field. The condition DeployItemValidation reports
// the same error.
//
// As long as an item is in phase Progressing, Reconcile is called again until the timeout of the job. Delete deletes
// the export Secret. Abort does nothing: there is nothing to stop, and the export remains valid until the next job. If
// providerStatus or export is removed from a configuration, the values of the earlier configuration remain.
//
// # Using it
//
//	err := deployerlib.Add(log, manager, nil, mock.Args(nil))
package mock
