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

// styles are the supported styles of deployers.
var styles = []string{"plain", "declarative", "graph"}

// licenses maps the supported licenses to their names and SPDX identifiers.
var licenses = map[string]struct{ name, spdx string }{
	"apache-2.0": {"Apache License 2.0", "Apache-2.0"},
	"mit":        {"MIT License", "MIT"},
	"none":       {},
}

// maxName is the maximum length of the name in a deploy item type, such as "password" in example.org/password. The name
// is limited because names of Kubernetes objects contain it.
const maxName = 40

// project contains the data for the templates. The user chooses the values of the first fields. The other fields are
// derived from them.
type project struct {
	Type    string // type of the deploy items
	Module  string // path of the Go module
	Style   string
	License string
	Owner   string // holder of the copyright
	Year    int

	Group    string // group of the configuration of an item
	Name     string // the last part of Type
	Kind     string // kind of the configuration of an item
	Deployer string // name of the program
	Target   bool   // whether items have Targets
	source          // the source of DeployerKit
}

// complete validates the choices of the user, and derives the other fields from them. It does not set the field
// `source`.
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
	p.Group, p.Name, p.Kind, p.Deployer = group, name, toKind(name), name+"-deployer"
	p.Target = p.Style != "plain"
	if p.Owner == "" {
		p.Owner = "The authors of " + p.Deployer
	}
	if strings.ContainsFunc(p.Owner, unicode.IsControl) {
		return fmt.Errorf("--owner %q: contains control characters", p.Owner)
	}
	return nil
}

// checkModule returns an error if path is not a valid path of the new module.
func checkModule(path string) error {
	if path == "" {
		return fmt.Errorf("--module: required")
	}
	if err := module.CheckImportPath(path); err != nil {
		return fmt.Errorf("--module: %w", err)
	}
	if path == deployerKit || strings.HasPrefix(path, deployerKit+"/") {
		return fmt.Errorf("--module %q: is the path of DeployerKit itself", path)
	}
	return nil
}

// toKind converts a name to a kind: my-password becomes MyPassword.
func toKind(name string) string {
	var kind strings.Builder
	for part := range strings.SplitSeq(name, "-") {
		if part != "" {
			kind.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return kind.String()
}

// LicenseName returns the full name of the license.
func (p *project) LicenseName() string { return licenses[p.License].name }

// Header returns the lines at the beginning of each Go file.
func (p *project) Header() string {
	if spdx := licenses[p.License].spdx; spdx != "" {
		return "// SPDX-License-Identifier: " + spdx + "\n\n"
	}
	return ""
}

// templateDirs returns the directories with the templates of the project.
func (p *project) templateDirs() []string {
	dirs := []string{path.Join(root, "common"), path.Join(root, p.Style)}
	if p.Target {
		dirs = append(dirs, path.Join(root, "targets"))
	}
	return dirs
}
