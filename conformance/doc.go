// SPDX-License-Identifier: Apache-2.0

// Package conformance checks from outside whether a deployer fulfils the deployer contract. It plays Landscaper in both
// revisions of the contract, watches every version of every item, and reports row by row what was promised and what was
// observed. The deployer may be written with this library or in any other way and in any language.
//
//	func TestConformance(t *testing.T) {
//		conformance.Run(t, conformance.Subject{
//			Name:    "my deployer",
//			Type:    "example.com/mine",
//			Command: func(kubeconfig string) *exec.Cmd { return exec.Command("bin/mine", "--kubeconfig", kubeconfig) },
//			Valid:   func(types.NamespacedName) any { return `{"apiVersion":"example.com/v1","kind":"Config","replicas":1}` },
//			Invalid: func(_ types.NamespacedName, note string) any {
//				return map[string]any{"apiVersion": "example.com/v1", "kind": "Config", "replicas": note}
//			},
//		})
//	}
//
// By default, the package starts a control plane for each revision (see package controlplane). That of the annotation
// revision has definitions without the newer fields. With Options.Kubeconfig the checks run in new namespaces of that
// cluster, which are deleted afterwards. A deployer of the same type must not run there.
//
// # What is checked
//
// [Checks] returns all checks. Each check has a name, the rows of the specification that it covers, a promise in one
// line, and, if only one revision makes the promise, that revision. There are two kinds:
//
//   - A scenario does something as Landscaper does, in a namespace of its own, and checks the result.
//   - A rule ("at every moment") is checked against every version of every item of all scenarios. The rules come last.
//
// If a check needs something that the subject does not have (such as a Target or a slow configuration), or is listed in
// [Subject.Exceptions], the report shows it as "n/a" with the reason. A check never passes because it could not run.
//
// test/envtest/conformance/spoiled proves that each check can fail, and for the right reason: it breaks a conforming
// deployer by one fault in what it reads or writes at a time. A new check needs a row there.
//
// # The report
//
// [Report.WriteTable] writes one line per check with the evidence below it (the phases of the items, or what is wrong),
// followed by the verdict for each row. [Report.WriteJUnit] writes the same as JUnit. [Execute] creates a report
// without Ginkgo, for programs and for tests that expect failures.
//
// # In other tests
//
// [Record] checks what happens in a namespace against the same rules during any test, for example with kills, network
// faults and stale reads. [History.Versions] returns all versions of an item, for further checks.
//
// # Time
//
// There are no fixed sleeps. Everything waits for a condition, at most for the time in [Bounds]. To see that an item is
// not written, a check processes a later item and then watches for Bounds.Quiet.
package conformance
