// SPDX-License-Identifier: Apache-2.0

// Package explain explains the state of a deploy item: which revision of the contract it follows, whether a run is due
// and why, which deployer is responsible, what the item waits for, what happens next, and what a user should do.
//
// [ReadFacts] reads the facts with the rights of the caller. If a request is forbidden, the facts that it would return
// are unknown. The rest of the explanation is not affected. [Explain] is a pure function that converts the facts to an
// [Explanation]. [Explanation.Format] formats the explanation for users. The fields of Explanation define the JSON and
// YAML output. An explanation contains no content of configurations and Secrets. Every text that comes from an API
// server is shortened to a single line without control characters.
//
//	facts, err := explain.ReadFacts(ctx, client, key, explain.Options{})
//	if err != nil { … } // only if the deploy item itself cannot be read
//	fmt.Print(explain.Explain(facts).Format(explain.Style{}))
//
// [Tree] shows the objects that belong to an Installation, an Execution or a deploy item.
package explain
