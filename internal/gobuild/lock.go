// SPDX-License-Identifier: Apache-2.0

package gobuild

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// lockPoll is the interval at which a waiting process tries to get the lock.
const lockPoll = 250 * time.Millisecond

// errLocked is returned by tryLock when another process holds the lock.
var errLocked = errors.New("locked by another process")

// lockFile waits until it holds an exclusive lock of the file with the given path. While another process holds the
// lock, lockFile calls `waiting` before each new attempt. There are no stale locks, because the system releases the
// lock when the process ends, for whatever reason.
func lockFile(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	for {
		err := tryLock(f)
		if err == nil {
			return func() { _ = f.Close() }, nil // closing releases the lock; the file has no content
		}
		if !errors.Is(err, errLocked) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
		}
		waiting()
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("wait for lock %s: %w", path, ctx.Err()), f.Close())
		case <-time.After(lockPoll):
		}
	}
}
