// SPDX-License-Identifier: Apache-2.0

package gobuild

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"time"
)

// maxMessages is how many lines of the go command's output are kept to explain a failure.
const maxMessages = 40

// progress parses the stderr of `go build -v`, which has one line for each compiled package and each downloaded module.
// It keeps the last lines of all other output, because they explain a failure.
type progress struct {
	displayName string // the name of the result for messages, see Recipe.DisplayName
	module      string // the main package, which is compiled last

	total int // number of packages, including those already compiled

	mu         sync.Mutex
	rest       []byte // the beginning of an incomplete line
	packages   int
	downloads  int
	linking    bool
	diagnostic []string
}

// Write implements io.Writer and never fails.
func (p *progress) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rest = append(p.rest, b...)
	for {
		i := bytes.IndexByte(p.rest, '\n')
		if i < 0 {
			return len(b), nil
		}
		p.parseLine(strings.TrimSpace(string(p.rest[:i])))
		p.rest = p.rest[i+1:]
	}
}

func (p *progress) parseLine(line string) {
	switch {
	case line == "":
	case strings.HasPrefix(line, "go: downloading "):
		p.downloads++
	case isPackagePath(line):
		p.packages++
		p.linking = p.linking || line == p.module
	default:
		p.diagnostic = append(p.diagnostic, line)
		if len(p.diagnostic) > maxMessages {
			p.diagnostic = p.diagnostic[1:]
		}
	}
}

// isPackagePath reports whether a line of output is a package path. Unlike messages, a path contains no spaces.
func isPackagePath(line string) bool {
	return !strings.ContainsAny(line, " \t:#")
}

// formatStatus returns a line about the progress of a build that has run for the given time.
func (p *progress) formatStatus(elapsed time.Duration) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	elapsed = elapsed.Round(time.Second)
	switch {
	case p.linking:
		return fmt.Sprintf("building %s: linking, %s", p.displayName, elapsed)
	case p.total == 0:
		return fmt.Sprintf("building %s: %d modules downloaded, %s", p.displayName, p.downloads, elapsed)
	default:
		return fmt.Sprintf("building %s: %d of at most %d packages, %s", p.displayName, p.packages, p.total, elapsed)
	}
}

// setTotal sets the number of packages.
func (p *progress) setTotal(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total = n
}

// getMessages returns the lines that name neither a package nor a download.
func (p *progress) getMessages() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append(append([]string(nil), p.diagnostic...), strings.TrimSpace(string(p.rest)))
}
