// SPDX-License-Identifier: Apache-2.0

// Package steps runs scenarios. A scenario is a list of steps, each of which changes something in a cluster or waits
// for an expected state. `deployerkit demo` and the tests with the real Landscaper consist of such steps.
//
// A [Runner] runs the steps and reports them. An [Env] is what a step can use: a client, a namespace, and what earlier
// steps have stored. The functions that return a [Func] are the actions and the expectations that both share.
package steps
