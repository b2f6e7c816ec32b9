// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package gobuild

import (
	"errors"
	"os"
	"runtime"
)

// errUnsupported is the error on systems without file locks, where programs must be provided by the environment
// variable.
var errUnsupported = errors.New("building programs is not supported on " + runtime.GOOS)

func tryLock(*os.File) error { return errUnsupported }

func freeBytes(string) (uint64, error) { return 0, errUnsupported }
