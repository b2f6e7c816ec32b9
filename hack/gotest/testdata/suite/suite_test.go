// SPDX-License-Identifier: Apache-2.0

// Package suite contains tests of every kind that gotest distinguishes.
package suite

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
)

const fixture = "a string that looks like the name of a test [Z1]"

func TestPlain(t *testing.T) {
	t.Run("runs [Z2, Z3]", func(t *testing.T) { t.Log(fixture) })
}

func TestSuite(t *testing.T) { RunSpecs(t, "suite") }

var _ = Describe("a suite", func() {
	It("runs [Z4]", func() { GinkgoWriter.Println(fixture) })
	PIt("does not run [Z5]", func() {})
})
