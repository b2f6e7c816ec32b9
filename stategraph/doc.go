// SPDX-License-Identifier: Apache-2.0

// Package stategraph creates a deployer from a graph of resources and their requirements. In each run the library walks
// the graph. A resource is reconciled when all resources that it requires are ready.
//
//	type Shop struct {
//		Config   stategraph.Resource
//		Database stategraph.Resource `graph:"requires=config"`
//		Web      stategraph.Resource `graph:"requires=database"`
//	}
//
//	graph, err := stategraph.FromStruct(Shop{
//		Config:   stategraph.Versioned(configMap),            // func(ctx) (*corev1.ConfigMap, error)
//		Database: stategraph.Object(newStatefulSet),          // func(ctx) (*appsv1.StatefulSet, error)
//		Web:      stategraph.Template(templates, "web.yaml"), // templates/web.yaml of an embed.FS
//	})
//
// Each field is a component. Here the components are named config, database and web. NewBuilder builds the same graph
// step by step. If a graph is invalid, the error lists everything that is wrong: cycles (each shown as a path),
// requirements that do not exist, names that are used twice, templates that cannot be read, and resources that have no
// listener although they may be unready.
//
// # One run
//
// A run visits each component as soon as all components that it requires are ready. It may visit several components at
// once. A visit calls Prepare, stores the inventory if it contains new names, and then calls Reconcile and Ready. When
// the library stores the inventory, it also adds the objects of later components whose names are already known. So it
// often stores the inventory only once per run. No call waits until an object is ready. If a component is not ready
// yet, its visit ends with the reason. A listener then triggers the next run, or another visit of the component while
// the run continues. A component that is not ready or has failed blocks only the components that require it, directly
// or indirectly. The status of the item contains the state of each component:
//
//	Ready        reconciled in this run, and ready
//	Progressing  reconciled in this run, but not ready yet; the status contains the reason
//	Blocked      not visited in this run; the status names the components that are not ready
//	Failed       a call returned an error
//	Removing     the component left the graph or the item is being deleted, and objects of the component still exist
//
// # Resources
//
// Object manages one object of any kind. Template manages the objects of a file. Versioned manages a ConfigMap or
// Secret that is replaced instead of changed. ForEach manages one instance for each element of a list. These resources
// listen to their objects and check whether the objects are ready. Reference waits for objects that other clients
// create. External runs plain functions. For everything else, implement Resource, Preparer if the resource has objects,
// and Deleter if it has something to undo.
//
// A Resource serves all items, so it must not store anything about an item. A Resource gets the current item from its
// context: Item, Config, Client and Log return the item, its configuration, a client of its target cluster and a
// logger. Name, Ref, Output and Outputs return the results of required components. Outside of a run, these functions
// return ErrNoRun, except Log. NewBuilderOf returns a builder for a graph whose configuration is of a given type.
// WithConfig passes this configuration to the functions that return objects. A component also requires the components that its
// template uses. To declare the components that a Go function uses, call Require and Uses. Builder.AddExport exports
// values for Landscaper. A resource cannot find out what triggered a run, so its result cannot depend on the trigger.
//
// # Objects
//
// Each object has the labels of Identity, which name the component, the instance and the deploy item. If an object has
// no name, the library computes a name from the same values. The computed name is the same in each run. An object that
// is up to date causes no request. If a component no longer returns an object, the library waits until this component
// and all components that require it are ready. Then it deletes the object. If a component is removed from the graph,
// or the item is deleted, the objects are deleted in reverse order. This order is stored with the objects, so a
// deletion does not call the functions that return objects and renders no templates.
package stategraph
