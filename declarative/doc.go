// SPDX-License-Identifier: Apache-2.0

// Package declarative makes a deployer of a function that returns the desired state. The function gets a deploy item
// and its observed children, and returns the item's status and the children that the item wants. The library compares,
// creates, changes, deletes, watches, retries and keeps the inventory.
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
// Sync is called for a job of the item, and whenever a child of a configured kind or its status changes, at most once
// per Options.MinInterval. It is called for many items at a time, but never twice at the same time for one item.
// SyncRequest is a snapshot, and changes to it have no effect.
//
// # Children
//
// Return the desired state, not actions. Return all children each time, and of each child only the fields that you care
// about. A child that is not returned any more is deleted. Fields that others set stay. A null means "not set by me". A
// status and fields that only the API server sets (uid, resourceVersion and so on) are refused, with the path. Children
// are typed objects, maps, unstructured objects, JSON or YAML, in any mixture. All faults of a response are reported at
// once, and then nothing is written.
//
// Children are in the namespace of the target that has the same name as the item's own, unless Options.Namespaces
// allows others. Two items must not want the same child. The second one gets an error. Name children with
// [SyncRequest.Name].
//
// A child with only a name (apiVersion, kind, namespace, name) is left as it is. It is neither changed nor deleted. If
// it is missing, it is not created, and a condition of the item says so. [Child.Keep] returns such a child for an
// observed one. A typed child without fields that the item has written before is an empty object, and loses its content
// (docs/adr/0033-empty-children.md). To create a Namespace or a ServiceAccount, set one more field, for example a
// label.
//
// # Status and errors
//
// The status describes the current state, as seen in the observed children. It becomes the item's provider status, with
// observedGeneration. Report what is wrong with an item there, too, because its users look there. SyncResponse.Wait
// keeps the job open until the children are ready.
//
// An error means that no child is changed, and that the handler is called again later. [Failable] splits a handler into
// three steps, so that the third step reports an error of the first two in the status.
//
// # Stable values
//
// The same request must lead to the same response. A handler that returns the time of day, a random value, or what it
// collected by ranging over a map changes its children at each call, and each change calls it again. The library
// notices that, names the fields in an event and a condition of the item, and calls the handler for this item less and
// less often, down to once in ten minutes. Read values that are generated once from the observed child, with [ValueOr].
// Package declarativetest finds such handlers before they run.
//
// The deployer consists of few parts. Package apply writes the children and keeps the inventory, and package upkeep
// watches them. See docs/adr/0017-declarative.md.
package declarative
