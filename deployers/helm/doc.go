// SPDX-License-Identifier: Apache-2.0

// Package helm deploys the Helm charts of deploy items of type landscaper.gardener.cloud/helm:
//
//	sources, err := chart.New(chart.Options{})
//	args := helm.Args(config, helm.Options{Sources: sources})
//	err := deployerlib.Add(log, mgr, nil, args)
//
// Package chart fetches charts, and package release renders them. Package managed/resources applies the objects and
// maintains them, as for the manifest deployer.
//
// # The configuration of an item
//
//	apiVersion: helm.deployer.landscaper.gardener.cloud/v1alpha1
//	kind: ProviderConfiguration
//	chart:                          # exactly one of:
//	  ref: registry.example.com/charts/web:1.2.0
//	  helmChartRepo: {helmChartRepoUrl: https://charts.example.com, helmChartName: web, helmChartVersion: ^1.2.0}
//	  resourceRef: Y29tcG9uZW50Oi…  # the key of a resource of a component
//	  archive: {raw: H4sIAAAA…}     # a chart archive (.tgz) in base64, or remote: {url: https://…}
//	name: web                       # the name of the release
//	namespace: shop                 # the namespace of the release, and of objects without a namespace
//	createNamespace: true
//	values: {replicas: 2}
//	helmDeployment: true            # the default; false: manifest mode, in which the chart is only rendered
//	helmDeploymentConfig:           # in Helm mode
//	  install: {atomic: false, force: false, skipSchemaValidation: false, takeOwnership: false, timeout: 5m, wait: false}
//	  upgrade: {timeout: 5m}        # the same fields as install
//	  uninstall: {timeout: 5m}
//	updateStrategy: apply           # in manifest mode: apply (the default, see Options), update, patch, merge, mergeOverwrite
//	deployerkit:                    # Landscaper's own Helm deployer ignores this field
//	  crds: {install: Create, upgrade: Skip, delete: false}
//	  disableHooks: false           # in Helm mode
//	  slim: false                   # in Helm mode: the record contains no files of the chart except its templates
//	  hooks: apply                  # in manifest mode: hooks become ordinary objects
//	  drift: {mode: Correct, ignore: [{kind: Deployment, paths: [/spec/replicas]}]}
//	  test: {enable: false}         # in Helm mode: the tests of the chart run after each new revision
//	  verify: {name: keyring}       # a Secret with the OpenPGP keys that may sign the chart
//
// The fields readinessChecks, exports, deleteTimeout, deletionGroups, deletionGroupsDuringUpdate and continuousReconcile
// are defined in package managed/resources. An export without fromResource exports a value of the rendering, such as
// .Values.replicas or .Release.Name.
//
// # Helm mode
//
// In Helm mode, the deployer creates a Helm release, which Helm itself can read, roll back and uninstall. An operation on a
// release, such as an upgrade, consists of steps:
//
//	check the owners of existing objects → create the record → hooks → apply the objects → wait → hooks → complete the record
//
// Each call of the deployer continues the operation until a step has to wait for the target. No step holds a worker.
// If an operation fails, its record says why, and a later job starts another operation. If the process was killed during
// an operation, the next run marks the record as failed. With atomic, a failed upgrade is rolled back, and a failed
// installation is uninstalled.
//
// A job whose chart, values and settings have not changed sends no request. The digests of these inputs are part of the
// provider status, and watches show that neither the objects nor the records have changed. A change by another client is
// corrected by one write to the object, without a new revision.
//
// # Manifest mode
//
// In manifest mode, the chart is rendered with the capabilities of the target, the values are validated against the
// schemas of the chart, and the objects are applied as by the manifest deployer. Hooks are left out, and an event names
// them. If neither the chart, nor the values, nor the objects have changed since the last deployment, the chart is not
// rendered again.
package helm
