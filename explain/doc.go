// SPDX-License-Identifier: Apache-2.0

// Package explain explains why a deploy item is in its state: which contract it follows, whether a run is due and why
// not, which deployer is responsible, what the item waits for, what happens next, and what to do about it.
//
// [Gather] reads the facts with the rights of the caller. If a read is forbidden, one part is unknown. [Explain], a
// pure function, converts the facts to an [Explanation]. [Explanation.Text] formats it for users, and its fields are
// the schema of the JSON and YAML output. It contains no content of a configuration or a Secret, and every text from an
// API server is one line of limited length without control characters.
//
//	facts, err := explain.Gather(ctx, client, key, explain.Options{})
//	if err != nil { … } // only if the deploy item itself cannot be read
//	fmt.Print(explain.Explain(facts).Text(explain.Style{}))
//
// [Tree] shows what belongs to an Installation, an Execution or a deploy item.
package explain
