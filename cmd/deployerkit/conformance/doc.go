// SPDX-License-Identifier: Apache-2.0

// Package conformance implements `deployerkit conformance`. The command checks whether a deployer fulfils the contract
// between Landscaper and its deployers, and writes a report. The deployer can be any program that a command line
// starts. See docs/testing-your-deployer.md.
//
//	root.AddCommand(conformance.NewCommand())
//	switch err := root.Execute(); {
//	case errors.Is(err, conformance.ErrFailed): // a check failed; the report has been written
//	case errors.Is(err, conformance.ErrUsage): // a flag or a file is wrong
//	}
package conformance
