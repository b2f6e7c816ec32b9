// SPDX-License-Identifier: Apache-2.0

// Package conformance checks from outside whether a deployer fulfils the deployer contract. It acts as Landscaper does
// in both revisions of the contract and watches every version of every item. For each promise in docs/behaviours.md, it
// reports the promise and the observation. The deployer need not use this library and can be written in any language.
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
// By default, the package starts a control plane for each revision (see package controlplane). On the control plane of
// the annotation revision, the CustomResourceDefinitions lack the newer fields. If Options.Kubeconfig is set, the
// checks use an existing cluster. The checks create namespaces in this cluster and delete these namespaces afterwards.
// No other deployer of the same type may run in that cluster.
//
// # What is checked
//
// [AllChecks] returns all checks. Each check has a name, a promise in one line, and the IDs (rows) of the promises in
// docs/behaviours.md that it covers. Some checks apply to only one revision. There are two kinds of checks:
//
//   - A scenario does what Landscaper would do, in its own namespace, and checks the result.
//   - A rule ("at every moment") is checked against every version of every item of all scenarios. The rules come last.
//
// If a check needs something that the subject does not provide (such as a Target or a slow configuration), or if
// [Subject.Exceptions] lists it, the report shows the check as "n/a" with the reason. A check that could not run never
// counts as passed.
//
// The tests in test/envtest/conformance/spoiled prove that each check can fail, and that it fails for the right reason.
// They run a conforming deployer many times. In each run, they change the deployer's reads or writes in a different
// way. A new check needs an entry in these tests.
//
// # The report
//
// [Report.WriteTable] writes one line per check. Below this line, it writes the phases of the items and, if the check
// failed, the fault. After the checks, it writes the verdict for each row of the specification. [Report.WriteJUnit]
// writes the same results in JUnit format. [Execute] creates a report without Ginkgo, for programs and for tests that
// expect failures.
//
// # In other tests
//
// Other tests can use [Record] to check everything that happens in a namespace against the same rules, for example
// during kills, network faults and stale reads. [History.GetVersions] returns all versions of an item, for further
// checks.
//
// # Time
//
// There are no fixed sleeps. Everything waits for a condition, at most for the time in [Bounds]. To prove that an item
// is not written, a check deploys another item, waits until the deployer has finished the other item, and then watches
// the first item for Bounds.Quiet.
package conformance
