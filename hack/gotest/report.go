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

// withReport is the first argument if go test starts this program to run a test binary.
const withReport = "with-report"

// reporter writes the reports. The zero value writes none.
type reporter struct {
	dir     string // directory of the reports; empty if there are none
	specs   string // directory of Ginkgo's reports
	wrapper string // the command with which go test runs a test binary
	err     error  // the first error
}

// newReporter returns a reporter for a directory, which it creates if necessary. args are the arguments of go test. It
// returns an error if a flag selects tests, because the report would be incomplete.
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

// suites is the name of the file that lists the test binaries that link Ginkgo.
const suites = "suites"

// listSuites finds the packages in go test's arguments that link Ginkgo.
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
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // without Ginkgo there is no report
		r.err = errors.Join(r.err, err)
		return
	}
	r.err = errors.Join(r.err, evidence.NewReport(pkg, passed, specs).Write(r.dir))
}

// specsFile returns the file to which the suite of a package writes its report.
func specsFile(dir, pkg string) string { return filepath.Join(dir, url.PathEscape(pkg)+".json") }

// execWithReport replaces this process by a test binary. If the binary links Ginkgo, it gets the flag that makes it
// report its specs. go test passes the same flags to all packages, and other packages do not know this one. The
// function returns only after an error.
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
