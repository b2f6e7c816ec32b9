// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/mod/module"
	"k8s.io/apimachinery/pkg/util/validation"
)

// styles are the kinds of deployers that can be written.
var styles = []string{"plain", "declarative", "graph"}

// licenses are the licences that can be chosen, with their names and their SPDX identifiers.
var licenses = map[string]struct{ name, spdx string }{
	"apache-2.0": {"Apache License 2.0", "Apache-2.0"},
	"mit":        {"MIT License", "MIT"},
	"none":       {},
}

// maxName bounds the name in a type, because the names of objects are made of it.
const maxName = 40

// project is what the templates are filled with. The first fields come from the user.
type project struct {
	Type    string // of the deploy items
	Module  string // path of the Go module
	Style   string
	License string
	Owner   string // of the copyright
	Year    int

	Group    string // of the configuration of an item
	Name     string // the last part of Type
	Kind     string // of the configuration of an item
	Deployer string // name of the program
	Target   bool   // items have Targets
	source          // of DeployerKit
}

// complete checks what the user chose and fills in the other fields, except source.
func (p *project) complete() error {
	group, name, ok := strings.Cut(p.Type, "/")
	switch {
	case !ok:
		return fmt.Errorf("type %q: want a domain, a slash and a name, such as example.org/password", p.Type)
	case len(validation.IsDNS1123Subdomain(group)) > 0:
		return fmt.Errorf("type %q: %q is not a domain: %s", p.Type, group, validation.IsDNS1123Subdomain(group)[0])
	case len(validation.IsDNS1035Label(name)) > 0:
		return fmt.Errorf("type %q: %q is not a name: %s", p.Type, name, validation.IsDNS1035Label(name)[0])
	case len(name) > maxName:
		return fmt.Errorf("type %q: the name has %d characters, at most %d are possible", p.Type, len(name), maxName)
	}
	if err := checkModule(p.Module); err != nil {
		return err
	}
	if !slices.Contains(styles, p.Style) {
		return fmt.Errorf("--style %q: want plain, declarative or graph", p.Style)
	}
	if _, known := licenses[p.License]; !known {
		return fmt.Errorf("--license %q: want apache-2.0, mit or none", p.License)
	}
	p.Group, p.Name, p.Kind, p.Deployer = group, name, kindOf(name), name+"-deployer"
	p.Target = p.Style != "plain"
	if p.Owner == "" {
		p.Owner = "The authors of " + p.Deployer
	}
	if strings.ContainsFunc(p.Owner, unicode.IsControl) {
		return fmt.Errorf("--owner %q: has control characters", p.Owner)
	}
	return nil
}

// checkModule returns an error if a path cannot be that of the new module.
func checkModule(path string) error {
	if path == "" {
		return fmt.Errorf("--module: required")
	}
	if err := module.CheckImportPath(path); err != nil {
		return fmt.Errorf("--module: %w", err)
	}
	if path == deployerKit || strings.HasPrefix(path, deployerKit+"/") {
		return fmt.Errorf("--module %q: is that of DeployerKit", path)
	}
	return nil
}

// kindOf returns a name as a kind: my-password becomes MyPassword.
func kindOf(name string) string {
	var kind strings.Builder
	for part := range strings.SplitSeq(name, "-") {
		if part != "" {
			kind.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return kind.String()
}

// LicenseName is the name of the licence for people.
func (p *project) LicenseName() string { return licenses[p.License].name }

// Header begins each Go file.
func (p *project) Header() string {
	if spdx := licenses[p.License].spdx; spdx != "" {
		return "// SPDX-License-Identifier: " + spdx + "\n\n"
	}
	return ""
}

// directories are those of the templates that the project consists of.
func (p *project) directories() []string {
	dirs := []string{path.Join(root, "common"), path.Join(root, p.Style)}
	if p.Target {
		dirs = append(dirs, path.Join(root, "targets"))
	}
	return dirs
}
