// SPDX-License-Identifier: Apache-2.0

// Package storedstate_test checks that the deployers of this version continue the work of earlier versions. The folder
// testdata contains what those versions stored: deploy items with their status, and objects with their marks.
//
// To record what a version stores, run the suite with the name of a new folder and with a checkout of the version:
//
//	DEPLOYERKIT_RECORD=v0.1.0 DEPLOYERKIT_CHECKOUT=/path/to/checkout go test -count=1 ./test/envtest/storedstate
package storedstate_test

import (
	"path/filepath"
	"testing"

	. "github.com/onsi/ginkgo/v2"

	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// root is the path of the repository, relative to this package.
var root = filepath.Join("..", "..", "..")

// programs is the directory of the programs that the suite builds.
var programs string

func TestStoredState(t *testing.T) {
	world.Run(t, "stored state of earlier versions")
}

var _ = BeforeSuite(func() { programs = GinkgoT().TempDir() })
