// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/deployerkit/deployerkit/hack/internal/evidence"
	"github.com/deployerkit/deployerkit/hack/internal/testjson"
)

// withReport is the first argument of gotest when go test uses it as a wrapper for a test binary.
const withReport = "with-report"

// reporter writes the reports. The zero value writes no reports.
type reporter struct {
	dir     string // directory for the reports; empty if no reports are written
	specs   string // directory for Ginkgo's JSON reports
	wrapper string // the command with which go test runs a test binary
	err     error  // the first error
}

// newReporter returns a reporter that writes to the directory dir. It creates dir if necessary. The parameter `args`
// contains the arguments of go test. If one of them selects tests, newReporter returns an error, because the reports
// would be incomplete.
func newReporter(dir string, args []string) (*reporter, error) {
	for _, arg := range args {
		if partial.MatchString(arg) {
			return nil, fmt.Errorf("reports would be incomplete: %s selects only some of the tests", arg)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the directory of reports: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find gotest: %w", err)
	}
	specs, err := os.MkdirTemp("", "gotest-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the reports of Ginkgo: %w", err)
	}
	r := &reporter{dir: dir, specs: specs, wrapper: fmt.Sprintf("%q %s %q", self, withReport, specs)}
	return r, r.listSuites(args)
}

// partial matches flags that select tests or specs.
var partial = regexp.MustCompile(`^--?(test\.)?(run|skip|short|list|failfast)(=|$)|^--?ginkgo\.(focus|skip|label|fail-fast)`)

// suites is the name of the file that lists the test binaries that use Ginkgo.
const suites = "suites"

// listSuites writes the file `suites` for the packages that the arguments of go test select.
func (r *reporter) listSuites(args []string) error {
	const format = `{{$p := .ImportPath}}{{range .Deps}}{{if eq . "github.com/onsi/ginkgo/v2"}}{{$p}}{{"\n"}}{{end}}{{end}}`
	packages := slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return strings.HasPrefix(arg, "-") })
	list := exec.Command("go", append([]string{"list", "-test", "-f", format}, packages...)...)
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("list the suites: %w", err)
	}
	return os.WriteFile(filepath.Join(r.specs, suites), out, 0o600)
}

// write writes the report for a package.
func (r *reporter) write(pkg string, passed []string) {
	if r.dir == "" {
		return
	}
	specs, err := testjson.PassedSpecs(specsFile(r.specs, pkg))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a package without Ginkgo has no such report
		r.err = errors.Join(r.err, err)
		return
	}
	r.err = errors.Join(r.err, evidence.NewReport(pkg, passed, specs).Write(r.dir))
}

// specsFile returns the path of the JSON report that Ginkgo writes for a package.
func specsFile(dir, pkg string) string { return filepath.Join(dir, url.PathEscape(pkg)+".json") }

// execWithReport replaces this process with a test binary. If the binary uses Ginkgo, execWithReport adds the flag with
// which Ginkgo writes a JSON report. This flag cannot be an argument of go test, because test binaries without Ginkgo
// would reject it. The function returns only if it fails.
func execWithReport(dir string, command []string) error {
	binary := command[0]
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("find the package of %s: %w", binary, err)
	}
	listed, err := os.ReadFile(filepath.Join(dir, suites))
	if err != nil {
		return fmt.Errorf("find the suites: %w", err)
	}
	if slices.Contains(strings.Fields(string(listed)), info.Path) {
		pkg := strings.TrimSuffix(info.Path, ".test")
		command = slices.Insert(slices.Clone(command), 1, "-ginkgo.json-report="+specsFile(dir, pkg))
	}
	return fmt.Errorf("run %s: %w", binary, syscall.Exec(binary, command, os.Environ()))
}
