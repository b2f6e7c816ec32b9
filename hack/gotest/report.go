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

// withReport is the first argument if go test starts this program to run the binary of a test.
const withReport = "with-report"

// reporter writes the reports. The zero value writes none.
type reporter struct {
	dir     string // of the reports; empty: there are none
	specs   string // directory of Ginkgo's reports
	wrapper string // the command with which go test runs a binary
	err     error  // the first one
}

// newReporter returns a reporter for a directory, which is made if it does not exist. args are those of go test.
// Errors: a flag selects tests, so that the report would not be complete.
func newReporter(dir string, args []string) (*reporter, error) {
	for _, arg := range args {
		if partial.MatchString(arg) {
			return nil, fmt.Errorf("no reports: %s runs a part of the tests", arg)
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

// suites is the file that lists the test binaries that link Ginkgo.
const suites = "suites"

// listSuites finds the packages of go test's arguments that link Ginkgo.
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

// write writes the report of a package.
func (r *reporter) write(pkg string, passed []string) {
	if r.dir == "" {
		return
	}
	specs, err := testjson.PassedSpecs(specsFile(r.specs, pkg))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // without Ginkgo there is none
		r.err = errors.Join(r.err, err)
		return
	}
	r.err = errors.Join(r.err, evidence.NewReport(pkg, passed, specs).Write(r.dir))
}

// specsFile is where the suite of a package writes its report.
func specsFile(dir, pkg string) string { return filepath.Join(dir, url.PathEscape(pkg)+".json") }

// execWithReport becomes the binary of a test. If it links Ginkgo, it gets the flag that makes it report its specs: go test
// has the same flags for all packages, and the others do not know this one. It returns only if that fails.
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
