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

// lockFile waits until this process alone holds path, and calls waiting each time that another process has it. The lock
// belongs to the open file. The system releases it when the process ends, however it ends, so there are no stale locks.
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
