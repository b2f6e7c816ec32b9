// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package gobuild

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// tryLock locks f without waiting. It returns errLocked if another process holds the lock.
func tryLock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EWOULDBLOCK):
			return errLocked
		case err != nil:
			return fmt.Errorf("flock: %w", err)
		}
		return nil
	}
}

// getFreeSpace returns how many bytes an unprivileged user can write to the file system of dir.
func getFreeSpace(dir string) (uint64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("statfs %s: %w", dir, err)
	}
	return st.Bavail * uint64(st.Bsize), nil
}
