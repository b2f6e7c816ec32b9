// SPDX-License-Identifier: Apache-2.0

// Package stategraph makes a deployer of a graph of resources and their requirements. In each run the library walks the
// graph. A resource runs when all resources that it requires are ready.
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
// The names of the fields are the components, here config, database and web. NewGraph builds the same piece by piece.
// All faults are found at once when the graph is built, such as a cycle, which is shown as a path, a requirement that
// does not exist, a name that is used twice, a template that cannot be read, or a resource that may be unready but has
// no listener.
//
// # One run
//
// A run visits all components, several at once, and each one as soon as all that it requires are ready. Prepare is
// called first. Then the inventory is stored if it grew, together with all other names that can be known by then. Then
// Reconcile and Ready are called. Nothing waits. A component that is not ready yet leaves the run with its reason, and
// a listener triggers the next run, or another visit of the component while the run goes on. A component that is not
// ready, or failed, blocks all that require it, directly or not, and nothing else. The states are in the status of the
// item:
//
//	Ready        reconciled in this run, and ready
//	Progressing  reconciled in this run, not ready yet, for a reason
//	Blocked      not touched, because of the components named
//	Failed       an error
//	Removing     it left the graph, or the item is deleted, and what it left behind is on its way out
//
// # Resources
//
// Object keeps one object of any kind, Template those of a file, Versioned a ConfigMap or Secret that is replaced
// instead of changed, and ForEach one instance per element of a list. They listen to their objects and know when these
// are ready. Reference waits for objects that others create. External runs plain functions, for anything else. If that
// is not enough, implement Resource, with Preparer for objects and Deleter for what must be undone.
//
// A Resource serves all items and holds nothing about any of them. Functions that take the context return what is known
// of the current item: Item, Config, Client (of the target), Log, and Name, Ref, Output and Outputs for what required
// components left. Outside of a run they return ErrNoRun. A graph made by NewGraphOf knows the type of the
// configuration, and With passes it to a body. A component also requires the components that its template uses. Require
// and Uses are the same for Go functions. Builder.Export exports values for Landscaper. The reason for a run is not
// available, so that the outcome cannot depend on it.
//
// # Objects
//
// Each object carries the labels of Identity, which name the component, the instance and the deploy item. Names that a
// body leaves out are computed from the same values, so that each run finds the objects of the one before. An object
// that is as desired costs no call. What a component no longer keeps is deleted when it and all that require it are
// ready without it. When a component left the graph, or the item is deleted, objects are deleted in the reverse of the
// order that was stored with them. No body and no template is evaluated for that.
package stategraph
