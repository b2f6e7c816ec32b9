// SPDX-License-Identifier: Apache-2.0

// Package conformance implements `deployerkit conformance`. It checks any deployer that can be started with a command
// line against the deployer contract, and writes the report. See docs/testing-your-deployer.md.
//
//	root.AddCommand(conformance.Command())
//	switch err := root.Execute(); {
//	case errors.Is(err, conformance.ErrFailed): // a check failed; the report has been written
//	case errors.Is(err, conformance.ErrUsage): // a flag or a file is wrong
//	}
package conformance
