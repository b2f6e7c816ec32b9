// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"context"
	"crypto/sha256"
	"os"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// accessPoll is the interval at which the kubeconfig files are read again.
const accessPoll = 10 * time.Second

// accessFiles contains the hashes of the kubeconfig files that are set by flags. The keys are the paths of the files.
// The hashes are computed when the process starts. Clients are created once, so the process must be restarted to use
// new credentials.
type accessFiles map[string][sha256.Size]byte

// readAccess reads the files. It ignores empty paths. A file that cannot be read counts as empty.
func readAccess(paths ...string) accessFiles {
	files := accessFiles{}
	for _, path := range paths {
		if path != "" {
			files[path], _ = hashFile(path)
		}
	}
	return files
}

// cancelOnChange returns a context that is cancelled when one of the files has a different content than at the start.
func (a accessFiles) cancelOnChange(ctx context.Context, log logr.Logger, clk clock.WithTicker) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if len(a) == 0 {
		return ctx, cancel
	}
	ticker := clk.NewTicker(accessPoll)
	go func() {
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C():
			}
			if path := a.findChanged(); path != "" {
				log.Info("the kubeconfig has changed; the process exits, so that it restarts with the new kubeconfig", "file", path)
				cancel()
			}
		}
	}()
	return ctx, cancel
}

// findChanged returns the path of a file whose content has changed, or "". It ignores a missing or empty file, which is
// probably being replaced.
func (a accessFiles) findChanged() string {
	for path, before := range a {
		if now, ok := hashFile(path); ok && now != before {
			return path
		}
	}
	return ""
}

// hashFile returns a hash of the content of a file. It returns false if the file is empty or cannot be read.
func hashFile(path string) ([sha256.Size]byte, bool) {
	content, err := os.ReadFile(path) //nolint:gosec // the operator names the file
	if err != nil || len(content) == 0 {
		return [sha256.Size]byte{}, false
	}
	return sha256.Sum256(content), true
}
