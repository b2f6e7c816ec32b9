// SPDX-License-Identifier: Apache-2.0

// Package explain says why a deploy item is in its state: which contract it follows, whether a run is due and why not, who is
// responsible, what it waits for, what comes next, and what to do about it.
//
// [Gather] reads the facts with the rights of the caller. A refused read makes one part unknown. [Explain] is pure: it turns the facts
// into an [Explanation], which [Explanation.Text] writes for people and which is also the schema of the JSON and YAML output. Nothing
// in it is the content of a configuration or of a Secret, and every text from an API server is one bounded line without control
// characters.
//
//	facts, err := explain.Gather(ctx, client, key, explain.Options{})
//	if err != nil { … } // only if the deploy item itself cannot be read
//	fmt.Print(explain.Explain(facts).Text(explain.Style{}))
//
// [Tree] shows what belongs to an Installation, an Execution or a deploy item.
package explain
