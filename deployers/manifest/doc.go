// SPDX-License-Identifier: Apache-2.0

// Package manifest deploys the Kubernetes manifests of deploy items of type
// landscaper.gardener.cloud/kubernetes-manifest:
//
//	args := manifest.Args(config, manifest.Options{})
//	err := deployerlib.Add(log, mgr, nil, args)
//
// A run goes through these steps (see reconcile in steps.go). None of them blocks a worker. If something is not done
// yet, the run ends, and a watch of the target triggers the next run of the item when something changed.
//
//	apply → readiness → custom checks → exports → patchAfterDeployment
//
// Package apply writes the objects. Targets are reached through one pool of clients (package targets), with one set of
// metadata-only watches each (apply/watch). The watches also show what others change. A hook then forces a run that
// corrects it, unless the item's owner switched continuous reconcile off. After a restart the first look at an item
// compares the objects in the target with its inventory.
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
//	  timeout: 3m                   # bounds all checks together
//	  custom:                       # see package readiness
//	  - name: database is up
//	    timeout: 1m                 # bounds this one
//	    resourceSelector: [{apiVersion: example.com/v1, kind: Database, name: a, namespace: ns}]
//	    requirements: [{jsonPath: status.phase, operator: in, values: [{value: Up}, {value: Idle}]}]
//	exports:
//	  defaultTimeout: 5m
//	  exports:
//	  - key: database.url           # nested: {database: {url: ...}}
//	    jsonPath: status.url
//	    timeout: 1m                 # bounds the waiting for this one
//	    fromResource: {apiVersion: example.com/v1, kind: Database, name: a, namespace: ns}
//	  - key: database.password
//	    jsonPath: spec.secretRef    # an object with name and, if it is not the same, namespace
//	    fromResource: {apiVersion: example.com/v1, kind: Database, name: a, namespace: ns}
//	    fromObjectRef: {apiVersion: v1, kind: Secret, jsonPath: data.password}
//	deleteTimeout: 3m               # bounds the waiting for deleted objects
//	deletionGroups:                 # the order of deleting; deletionGroupsDuringUpdate likewise
//	- predefinedResourceGroup: {type: namespaced-resources, forceDelete: false}
//	- customResourceGroup: {resources: [{apiVersion: v1, kind: Namespace, names: [ns]}]}
//	continuousReconcile: {every: 1h}
//
// v1alpha1 is the same with bare manifests and without continuousReconcile. Its conversion loses nothing. The timeouts
// come from older Landscapers. Each bounds its step within the time that is left for the job.
//
// Decode is strict where Landscaper's own manifest deployer drops or ignores faults. It refuses a field that does not
// exist, a value that has no meaning, a manifest without kind or name, the same object twice with different content, an
// export without a resource, a targetName on a deletion group that would ignore it, and a label or an annotation with
// the library's own prefix. Each is a ConfigError with the path of the field. It also refuses kubeconfig, because the
// item's Target names the cluster.
//
// # The provider status
//
// The provider status is that of Landscaper's manifest deployer, v1alpha2, with an inventory next to the
// managedResources, so that items can be handed over both ways. DecodeStatus also reads v1alpha1.
//
// # Exports
//
//	values, err := manifest.ReadExports(ctx, config.Exports, getter)
//	if err == nil && len(values.Waiting) == 0 {
//		raw, err := manifest.EncodeExports(values.Values)   // refuses more than 1 MiB
//		err = deployerlib.WriteExport(ctx, c, di, raw)
//	}
//
// An export is the first value that its path finds. null counts as no value yet.
package manifest
