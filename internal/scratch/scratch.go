// SPDX-License-Identifier: Apache-2.0

// Package scratch creates temporary directories. If a process is killed before it removes its directory, the next
// process that creates a directory with the same prefix removes the directory.
package scratch

import (
	"errors"
	"os"
	"path/filepath"
)

// lockName is the name of a file in each directory. The process that uses the directory holds a lock on this file,
// which ends with the process.
const lockName = ".lock"

// Directory is a temporary directory.
type Directory struct {
	// Path is the path of the directory.
	Path string

	lock *os.File // nil on systems without file locks
}

// New creates a directory in os.TempDir. The name of the directory begins with prefix. Before, New removes the
// directories with this prefix that ended processes have left. Before it removes one of them, it calls the function
// `before`, which may be nil, with the path.
func New(prefix string, before func(path string)) (*Directory, error) {
	removeAbandoned(prefix, before)
	path, err := os.MkdirTemp("", prefix)
	if err != nil {
		return nil, err
	}
	lock, err := createLock(path)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	return &Directory{Path: path, lock: lock}, nil
}

// Remove removes the directory and its content.
func (d *Directory) Remove() error {
	err := os.RemoveAll(d.Path)
	if d.lock != nil {
		err = errors.Join(err, d.lock.Close())
		d.lock = nil
	}
	return err
}

// removeAbandoned removes the directories of ended processes. It ignores errors, because another process may remove the
// same directory.
func removeAbandoned(prefix string, before func(path string)) {
	paths, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	for _, path := range paths {
		lock := lockAbandoned(path)
		if lock == nil {
			continue
		}
		if before != nil {
			before(path)
		}
		_ = os.RemoveAll(path)
		_ = lock.Close()
	}
}
