// SPDX-License-Identifier: Apache-2.0

// Package declarative turns a function that returns the desired state into a deployer. The function receives a deploy
// item and its observed children: the objects in the target that belong to the item. It returns the item's status and
// the desired children. The library compares the observed children with the desired ones. It creates, changes, deletes
// and watches children, retries after errors, and maintains the inventory.
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
//		response := declarative.NewBuilder(Status{Phase: pod.Status.Phase}).Add(echoPod(req, config), echoService(req))
//		if pod.Status.Phase != corev1.PodRunning {
//			response.Wait("the pod is not running")
//		}
//		return response.Build()
//	}
//
//	args := declarative.Args("echo.example.com", "example.com/echo", declarative.HandlerFunc(sync), declarative.Options{
//		Children: []declarative.ChildKind{
//			{APIVersion: "v1", Kind: "Pod", Update: declarative.StrategyRecreate},
//			{APIVersion: "v1", Kind: "Service"},
//		},
//	})
//	err := deployerlib.Add(log, mgr, nil, args)
//
// # When Sync is called
//
// Sync is called for each job of the item, and whenever a child of a configured kind or the status of such a child
// changes. Changes cause at most one call per Options.MinInterval. Calls for different items run concurrently, but
// calls for one item never do. SyncRequest is a snapshot, and changes to it have no effect.
//
// # Children
//
// Return the desired state, not actions. Return all children in each call, but only those fields of a child that you
// care about. A child that is no longer returned is deleted. Fields that other clients set remain. A null field means
// "not set by me". A child must not contain a status or fields that only the API server sets (uid, resourceVersion and
// so on). A child may be a typed object, a map, an unstructured object, JSON or YAML, and a response may combine these
// forms. If a response is invalid, all errors are reported at once, with the paths of the fields, and nothing is
// written.
//
// By default, the children of an item are in the namespace with the same name as the item's own namespace.
// Options.Namespaces can allow other namespaces. Two items must not return the same child: the second item gets an
// error. Use [SyncRequest.Name] to name children.
//
// A child that consists only of apiVersion, kind, namespace and name is neither changed nor deleted. If this child does
// not exist, it is not created, and a condition of the item reports it as missing. [Child.Keep] returns such a child
// for an observed child. There is one exception: the handler returns a typed object without any other field, and an
// earlier run has written the child. In this case, all other fields are removed from the child
// (docs/adr/0033-empty-children.md). To create an object that needs no other field, such as a Namespace or a
// ServiceAccount, set one more field, for example a label.
//
// # Status and errors
//
// The status describes the state of the item, which the handler derives from the observed children. The library adds
// observedGeneration and stores the result as the provider status of the item. Report problems of an item in its
// status, too, because its users look there. Set SyncResponse.Wait to keep the job open until the children are ready.
//
// If the handler returns an error, no child is changed, and the handler is called again later. [FromFailable] builds a
// handler from three steps, so that the third step can report an error of the first two steps in the status.
//
// # Stable values
//
// The same request must lead to the same response. If the response depends on the current time, on a random value or on
// the iteration order of a map, each call changes the children, and each change triggers another call. The library
// detects such a handler, and names the fields in an event and a condition of the item. It then calls the handler for
// this item less and less often, down to once in ten minutes. Values such as passwords must be generated only once:
// [ValueOr] generates a value only if the observed child does not contain one yet. Package declarativetest can detect
// unstable values in tests.
//
// The deployer is based on two other packages. Package apply writes the children and maintains the inventory, and
// package managed watches the children. See docs/adr/0017-declarative.md.
package declarative
