// SPDX-License-Identifier: Apache-2.0

package gobuild

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"time"
)

// keptOutput is how many lines of the go command are kept to explain a failure.
const keptOutput = 40

// progress reads what `go build -v` says on stderr: one line per package that it compiled, and one
// per module that it downloads. Everything else is kept, because it explains a failure.
type progress struct {
	what   string // what is built
	module string // the main package, whose turn comes last

	total int // packages, those that are compiled already included

	mu         sync.Mutex
	rest       []byte // of a line that has not ended
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
		p.line(strings.TrimSpace(string(p.rest[:i])))
		p.rest = p.rest[i+1:]
	}
}

func (p *progress) line(line string) {
	switch {
	case line == "":
	case strings.HasPrefix(line, "go: downloading "):
		p.downloads++
	case isPackagePath(line):
		p.packages++
		p.linking = p.linking || line == p.module
	default:
		p.diagnostic = append(p.diagnostic, line)
		if len(p.diagnostic) > keptOutput {
			p.diagnostic = p.diagnostic[1:]
		}
	}
}

// isPackagePath tells a line of -v from a message: a path has no spaces, and messages have.
func isPackagePath(line string) bool {
	return !strings.ContainsAny(line, " \t:#")
}

// text says how far the build is after it ran for elapsed.
func (p *progress) text(elapsed time.Duration) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	elapsed = elapsed.Round(time.Second)
	switch {
	case p.linking:
		return fmt.Sprintf("building %s: linking, %s", p.what, elapsed)
	case p.total == 0:
		return fmt.Sprintf("building %s: %d modules downloaded, %s", p.what, p.downloads, elapsed)
	default:
		return fmt.Sprintf("building %s: %d of at most %d packages, %s", p.what, p.packages, p.total, elapsed)
	}
}

// setTotal tells how many packages there are.
func (p *progress) setTotal(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total = n
}

// messages returns what was neither a package nor a download.
func (p *progress) messages() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append(append([]string(nil), p.diagnostic...), strings.TrimSpace(string(p.rest)))
}
