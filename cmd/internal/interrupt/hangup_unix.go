// SPDX-License-Identifier: Apache-2.0

//go:build unix

package interrupt

import (
	"os"

	"golang.org/x/sys/unix"
)

// isClosed reports whether one of the files is a terminal that was closed. The kernel sends SIGHUP only to the first
// process on the terminal, such as a shell or make, and make does not pass the signal on.
func isClosed(files ...*os.File) bool {
	for _, file := range files {
		info, err := file.Stat()
		if err != nil || info.Mode()&os.ModeCharDevice == 0 {
			continue
		}
		polled := []unix.PollFd{{Fd: int32(file.Fd())}} //nolint:gosec // file descriptors are small
		if n, err := unix.Poll(polled, 0); err == nil && n > 0 && polled[0].Revents&unix.POLLHUP != 0 {
			return true
		}
	}
	return false
}
