// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package gobuild

import (
	"errors"
	"os"
	"runtime"
)

// errUnsupported is returned on systems for which file locks are not implemented. On these systems, the environment
// variable Finder.Env must name a directory with the programs.
var errUnsupported = errors.New("building programs is not supported on " + runtime.GOOS)

func tryLock(*os.File) error { return errUnsupported }

func freeBytes(string) (uint64, error) { return 0, errUnsupported }
