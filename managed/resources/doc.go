// SPDX-License-Identifier: Apache-2.0

// Package resources implements the settings that Landscaper's manifest and Helm deployers have in common: readiness
// checks, exports, deletion groups, other targets and the schedule. It also implements the provider status of these
// deployers. A deployer that uses this package only has to determine the objects. Package managed maintains them.
//
// A deployer embeds a Spec in the type of its configuration and validates it with Spec.ToConfig:
//
//	type Configuration struct {
//		metav1.TypeMeta `json:",inline"`
//		resources.Spec  `json:",inline"`
//
//		Chart string `json:"chart"`
//	}
//
// Each call of the deployer begins a Run. The deployer sets its configuration and the options of the apply engine, and
// opens the target:
//
//	r, err := resources.Begin(ctx, manager, format, di)
//	if err != nil {
//		return err
//	}
//	r.Config, r.Engine = &config, apply.Options{LandscaperLabel: "helm.deployer.landscaper.gardener.cloud/deployitem"}
//	if err := r.Managed.Connect(ctx, target); err != nil {
//		return err
//	}
//	return r.Deploy(ctx, objects, nil)
//
// Run.Deploy runs all steps of a deployment:
//
//	apply → readiness → custom checks → exports → patchAfterDeployment
//
// A deployer that does not use Run.Deploy calls the steps itself: Apply, CheckAllReady, SetExports and
// TryCleanUpFormer. No step blocks a worker. If a step has to wait, it returns an error that makes the item wait. When
// something has changed, a watch of the target triggers the next reconcile of the item. The example of the package
// contains a whole deployer.
//
// # The configuration
//
//	readinessChecks:
//	  disableDefault: false
//	  timeout: 3m                   # limits all checks together
//	  custom:                       # see package readiness
//	  - name: database is up
//	    timeout: 1m                 # limits this check
//	    resourceSelector: [{apiVersion: example.com/v1, kind: Database, name: a, namespace: ns}]
//	    requirements: [{jsonPath: status.phase, operator: in, values: [{value: Up}, {value: Idle}]}]
//	    targetName: other           # another Target in the namespace of the item; exports have this field, too
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
// The timeouts are fields of older versions of Landscaper. Each timeout limits one step, and cannot extend the time
// that is left for the job. The value of an export is the first value at its path. A null value counts as missing.
package resources
