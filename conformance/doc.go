// SPDX-License-Identifier: Apache-2.0

// Package conformance holds any deployer to the deployer contract, from outside: it plays Landscaper in both revisions of
// the contract, watches every version of every item, and reports row by row what was promised and what was seen. The
// deployer may be written with this library or with anything else, in any language.
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
// Without Kubeconfig each revision gets a control plane of its own (see package test/envtest), the annotation revision one
// whose definitions lack the newer fields. With it the checks run in namespaces of their own on that cluster, which are
// removed; a deployer of the same type must not run there.
//
// # What is checked
//
// [Checks] is the table: each check has a name, the rows of the specification that it stands for, a promise in one line,
// and, where the revisions differ, the one that promises it. Two kinds:
//
//   - A scenario does something as Landscaper does, in a namespace of its own, and looks at what becomes of it.
//   - A rule ("at every moment") is held against every version of every item that any scenario made. These come last.
//
// What a subject leaves out (no Target, no slow configuration) and what it declares in [Subject.Exceptions] is "n/a" in the
// report, with the reason. Nothing passes because it could not be tried.
//
// That each check can fail, and for the right reason, is shown in test/envtest/conformance/spoiled: a deployer that keeps the
// contract is spoiled in what it reads or writes, fault by fault. A new check needs a row there.
//
// # The report
//
// [Report.WriteTable] writes a line per check with the evidence below it (the phases that the items showed, or what is
// wrong), then the verdict about each row. [Report.WriteJUnit] is the same for machines. [Execute] makes the report without
// Ginkgo, for programs and for tests that expect failures.
//
// # In tests of your own
//
// [Record] holds what happens in a namespace to the same rules while a test of your own runs there, whatever that does:
// kills, faults of the network, stale reads. [History.Versions] are all versions of an item, for what else you promise.
//
// # Time
//
// There are no fixed sleeps: everything waits for what it needs, at most for the time in [Bounds]. "Is not written" is seen
// by letting a later item go through and watching for Bounds.Quiet after it.
package conformance
