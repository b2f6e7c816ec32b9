// SPDX-License-Identifier: Apache-2.0

// Package stategraph makes a deployer of a graph: resources, and what each of them requires. In each run the library walks
// the graph; a resource runs when all that it requires are ready.
//
//	type Shop struct {
//		Config   stategraph.Resource
//		Database stategraph.Resource `graph:"requires=config"`
//		Web      stategraph.Resource `graph:"requires=database"`
//	}
//
//	graph, err := stategraph.FromStruct(Shop{
//		Config:   stategraph.Versioned(configMap),               // func(ctx) (*corev1.ConfigMap, error)
//		Database: stategraph.Object(statefulSet),                // func(ctx) (*appsv1.StatefulSet, error)
//		Web:      stategraph.Template(templates, "web.yaml"),    // templates/web.yaml of an embed.FS
//	})
//
// The names of the fields are the components: config, database, web. NewGraph builds the same piece by piece. What is
// wrong is found when the graph is built, all at once: a cycle, shown as a path; a requirement that does not exist; a name
// that is used twice; a template that cannot be read; a resource that may be unready, but would never be looked at again.
//
// # One run
//
// A run visits all components, several at once: each as soon as all that it requires are ready. Prepare is called first, then the
// inventory is stored if it grew, together with all other names that can be known by then, and then Reconcile and Ready are
// called. Nothing waits: what is not ready yet leaves the run with its reason, and a listener brings the next run about, or has
// the component looked at again while the run goes on. A component that is not ready, or failed, blocks all that requires it,
// directly or not, and nothing else. The states are in the status of the item:
//
//	Ready        reconciled in this run, and ready
//	Progressing  reconciled in this run, not ready yet, for a reason
//	Blocked      not touched, because of the components named
//	Failed       an error
//	Removing     it left the graph, or the item is deleted, and what it left behind is on its way out
//
// # Resources
//
// Object keeps one object of any kind, Template those of a file, Versioned a ConfigMap or Secret that is replaced instead of
// changed, ForEach one instance per element of a list. They listen to their objects and know when those are ready.
// Reference waits for objects that others create. External is for anything else: plain functions. Whoever needs more implements Resource, with Preparer for objects and
// Deleter for what must be undone.
//
// A Resource serves all items and holds nothing about any. What is known of the item that is processed is in the context:
// Item, Config, Client (of the target), Log, and what required components left: Name, Ref, Output and Outputs. A graph made by
// NewGraphOf knows the type of the configuration, and With hands it to a body. What a template asks for is required without
// being named; Require and Uses are the same for Go functions. Builder.Export exports values for Landscaper. Outside of a run
// they return ErrNoRun. Nothing tells why a run takes place, so that the outcome cannot depend on it.
//
// # Objects
//
// Each object carries the labels of Identity: component, instance, and the deploy item. Names that a body leaves out are
// computed from the same, so that each run finds the objects of the one before. What is as desired costs no call.
// What a component no longer keeps is deleted when it and all that require it are ready without. When a component left
// the graph, or the item is deleted, objects go in the reverse of the order that was stored with them; no body and no
// template is evaluated for that.
package stategraph
