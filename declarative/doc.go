// SPDX-License-Identifier: Apache-2.0

// Package declarative makes a deployer of a function that says what shall be: from a deploy item and the children that
// are there, to the item's status and the children that shall be there. The library compares, creates, changes, deletes,
// watches, retries and keeps account.
//
//	func sync(ctx context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
//		config, err := declarative.Config[Config](req)
//		if err != nil {
//			return nil, err
//		}
//		pod, _, err := declarative.Find[corev1.Pod](req.Children, "Pod", req.Name("echo"))
//		if err != nil {
//			return nil, err
//		}
//		response := declarative.Respond(Status{Phase: pod.Status.Phase}).Add(echoPod(req, config), echoService(req))
//		if pod.Status.Phase != corev1.PodRunning {
//			response.Wait("the pod is not running")
//		}
//		return response.Response()
//	}
//
//	args := declarative.Args("echo.example.com", "example.com/echo", declarative.HandlerFunc(sync), declarative.Options{
//		Children: []declarative.ChildKind{
//			{APIVersion: "v1", Kind: "Pod", Update: declarative.Recreate},
//			{APIVersion: "v1", Kind: "Service"},
//		},
//	})
//	err := deployerlib.Add(log, mgr, nil, args)
//
// # When it is called
//
// Sync is called for a job of the item, and whenever a child of a configured kind changes, its status included, at most
// once per Options.MinInterval. It is called for many items at a time, for one item never twice at the same time.
// SyncRequest is a snapshot: changing it changes nothing.
//
// # Children
//
// Return what shall be, not what to do: all children, each time, and of each only the fields that you care about. A child
// that is not returned any more is deleted. Fields that others set stay. null means "not set by me"; a status and what
// only the API server sets (uid, resourceVersion and so on) are refused, with the path. Children are typed objects, maps,
// unstructured objects, JSON or YAML, in any mixture. All faults of an answer are told at once, and then nothing is written.
//
// Children lie in the namespace of the target that is called as the item's own, unless Options.Namespaces allows
// others. Two items must not want the same child: the second gets an error. Name children with [SyncRequest.Name].
//
// A child that says nothing but its name (apiVersion, kind, namespace, name) is left as it is: it is neither changed
// nor deleted, and is not created if it is missing, which a condition of the item tells. [Child.Keep] makes one of an
// observed child. A typed child without fields that the item has written before is an empty one, and loses what was in
// it (docs/adr/0033-empty-children.md). So a Namespace or ServiceAccount that shall be created needs one more field: give it a label.
//
// # Status and errors
//
// The status is what is, found by looking at the observed children; it becomes the item's provider status, with
// observedGeneration. Tell what is wrong with an item there, too, where its users look. SyncResponse.Wait keeps the job
// open until the children are ready.
//
// An error means that no child is touched, and that the handler is called again later. [Failable] splits a handler into
// three steps, so that an error of the first two is told in the status by the third.
//
// # Stable values
//
// The same request must lead to the same answer. A handler that returns the time of day, a random value, or what it
// collected by ranging over a map changes its children at each call, and each change calls it again. The library
// notices that, names the fields in an event and a condition of the item, and calls the handler for this item ever more
// seldom, down to once in ten minutes. Values that are made once are read from the observed child: [ValueOr]. Package
// declarativetest finds such handlers before they run.
//
// The deployer is built from few pieces: package apply writes and keeps account, package upkeep watches. See
// docs/adr/0017-declarative.md.
package declarative
