// SPDX-License-Identifier: Apache-2.0

//go:build unix

package scratch

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// createLock creates and locks the lock file of a new directory. The file gets its name only when it is locked, so that
// another process does not find it unlocked.
func createLock(path string) (*os.File, error) {
	unnamed := filepath.Join(path, lockName+".new")
	file, err := os.OpenFile(unnamed, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(lock(file), os.Rename(unnamed, filepath.Join(path, lockName))); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// lockAbandoned returns the locked lock file of a directory if the process that used the directory has ended. Otherwise
// it returns nil. It also returns nil for a directory of another user, or without a lock file.
func lockAbandoned(path string) *os.File {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return nil
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || int(stat.Uid) != os.Getuid() {
		return nil
	}
	file, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	if lock(file) != nil {
		_ = file.Close()
		return nil
	}
	return file
}

// lock locks a file. It returns an error if another process holds the lock.
func lock(file *os.File) error { return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
