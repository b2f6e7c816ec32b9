// SPDX-License-Identifier: Apache-2.0

package gobuild

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"time"
)

// keptOutput is the number of lines of the go command that are kept to explain a failure.
const keptOutput = 40

// progress parses the stderr of `go build -v`, which has one line per compiled package and one per downloaded module.
// It keeps all other lines, because they explain a failure.
type progress struct {
	what   string // what is built
	module string // the main package, which is compiled last

	total int // number of packages, including those already compiled

	mu         sync.Mutex
	rest       []byte // a line that has not ended
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

// isPackagePath reports whether a line of -v is a package path. A path has no spaces, unlike messages.
func isPackagePath(line string) bool {
	return !strings.ContainsAny(line, " \t:#")
}

// text describes the progress of a build that has run for elapsed.
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

// setTotal sets the number of packages.
func (p *progress) setTotal(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total = n
}

// messages returns the lines that are neither a package nor a download.
func (p *progress) messages() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append(append([]string(nil), p.diagnostic...), strings.TrimSpace(string(p.rest)))
}
