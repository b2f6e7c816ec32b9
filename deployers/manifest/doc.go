// SPDX-License-Identifier: Apache-2.0

// Package manifest deploys the Kubernetes manifests of deploy items of type
// landscaper.gardener.cloud/kubernetes-manifest:
//
//	args := manifest.Args(config, manifest.Options{})
//	err := deployerlib.Add(log, mgr, nil, args)
//
// Package managed/resources runs the steps of a deployment: apply, readiness, custom checks, exports and
// patchAfterDeployment. No step blocks a worker. If a step has to wait, the reconcile ends, and a watch of the target
// triggers the next reconcile of the item when something has changed. This package converts the manifests to objects.
//
// Package apply writes the objects. Package targets provides a pool of clients for the targets, and package observe
// watches the metadata of the objects in each target. When the watches detect changes by other clients, a hook starts a
// run that corrects the changes, unless the owner of the item has disabled continuous reconcile. After a restart, the
// first reconcile of an item compares the objects in the target with the inventory.
//
// # The configuration of an item
//
//	apiVersion: manifest.deployer.landscaper.gardener.cloud/v1alpha2
//	kind: ProviderConfiguration
//	updateStrategy: apply           # apply (the default, see Options), update, patch, merge, mergeOverwrite
//	manifests:
//	- policy: manage                # manage (the default), fallback, keep, ignore, immutable
//	  manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns}, data: {b: c}}
//	  annotateBeforeCreate: {example.com/a: b}
//	  annotateBeforeDelete: {example.com/a: b}
//	  patchAfterDeployment: {data: {d: e}}
//	  patchBeforeDelete: {data: {d: null}}
//	readinessChecks:
//	  disableDefault: false
//	  timeout: 3m                   # limits all checks together
//	  custom:                       # see package readiness
//	  - name: database is up
//	    timeout: 1m                 # limits this check
//	    resourceSelector: [{apiVersion: example.com/v1, kind: Database, name: a, namespace: ns}]
//	    requirements: [{jsonPath: status.phase, operator: in, values: [{value: Up}, {value: Idle}]}]
//	exports:
//	  defaultTimeout: 5m
//	  exports:
//	  - key: database.url           # nested: {database: {url: ...}}
//	    jsonPath: status.url
//	    timeout: 1m                 # limits the wait for this export
//	    fromResource: {apiVersion: example.com/v1, kind: Database, name: a, namespace: ns}
//	  - key: database.password
//	    jsonPath: spec.secretRef    # an object with name and, if it is not the same, namespace
//	    fromResource: {apiVersion: example.com/v1, kind: Database, name: a, namespace: ns}
//	    fromObjectRef: {apiVersion: v1, kind: Secret, jsonPath: data.password}
//	deleteTimeout: 3m               # limits the wait for deleted objects
//	deletionGroups:                 # the order of deletion; deletionGroupsDuringUpdate has the same form
//	- predefinedResourceGroup: {type: namespaced-resources, forceDelete: false}
//	- customResourceGroup: {resources: [{apiVersion: v1, kind: Namespace, names: [ns]}]}
//	continuousReconcile: {every: 1h}
//
// In v1alpha1, each element of the field `manifests` is a Kubernetes manifest without a policy, and there is no field
// `continuousReconcile`. The conversion of v1alpha1 to v1alpha2 preserves all information. All fields from
// readinessChecks to continuousReconcile are defined in package managed/resources.
//
// Decode returns an error for mistakes that Landscaper's own manifest deployer ignores:
//
//   - an unknown field or an invalid value
//   - a manifest without kind or name
//   - two manifests with different content for the same object
//   - an export without a resource
//   - a deletion group whose targetName would have no effect
//   - a label or an annotation with the library's own prefix
//
// It also rejects the field `kubeconfig`, because the Target of the item determines the cluster. Each error is a
// NewConfigError with the path of the field.
//
// # The provider status
//
// The provider status has the format of Landscaper's manifest deployer, v1alpha2, and contains an inventory in addition
// to managedResources. Each of the two deployers can therefore take over items from the other. DecodeStatus also reads
// v1alpha1.
package manifest
