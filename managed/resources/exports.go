// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"cmp"
	"fmt"

	"github.com/deployerkit/deployerkit/apply/jsonpath"
)

// setExports validates and prepares the exports.
func (c *Config) setExports(in *ExportsSpec, opts Options) error {
	if in == nil {
		return nil
	}
	fallback, err := parseDuration("exports.defaultTimeout", in.DefaultTimeout)
	if err != nil {
		return err
	}
	opts.ExportTimeout = cmp.Or(fallback, opts.ExportTimeout)
	c.Exports, err = PrepareExports("exports.exports", in.Exports, opts)
	return err
}

// PrepareExports validates the exports in the field path of the configuration, parses their paths and sets their
// timeouts. Spec.ToConfig calls PrepareExports for the field exports.exports. If the configuration contains exports in
// another field as well, call PrepareExports for that field, and append the result to Config.Exports. The error is a
// deployerlib.NewConfigError with the path of the first invalid field.
func PrepareExports(path string, in []ExportSpec, opts Options) ([]Export, error) {
	var out []Export
	for i := range in {
		export, err := prepareExport(fmt.Sprintf("%s[%d]", path, i), &in[i], opts)
		if err != nil {
			return nil, err
		}
		out = append(out, *export)
	}
	return out, nil
}

// prepareExport validates an export, parses its paths and sets its timeout.
func prepareExport(at string, in *ExportSpec, opts Options) (*Export, error) {
	export := &Export{Export: in.Export, configPath: at}
	timeout, err := parseDuration(at+".timeout", in.Timeout)
	if err != nil {
		return nil, err
	}
	export.Timeout = cmp.Or(timeout, opts.ExportTimeout)
	if export.key, err = jsonpath.ParseKey(in.Key); err != nil {
		return nil, newConfigError(at+".key", "%q %s", in.Key, err.Error())
	}
	if export.path, err = jsonpath.Parse(in.JSONPath); err != nil {
		return nil, newConfigError(at+".jsonPath", "%q %s", in.JSONPath, err.Error())
	}
	if in.TargetName != nil && *in.TargetName == "" {
		return nil, newConfigError(at+".targetName", "must not be empty")
	}
	switch {
	case in.FromResource != nil:
		return export, export.checkSource()
	case !opts.ExportValues:
		return nil, newConfigError(at+".fromResource", "required, because the deployer has no other values to export")
	case in.FromObjectReference != nil || in.TargetName != nil:
		return nil, newConfigError(at+".fromResource", "required, because fromObjectRef or targetName is set")
	}
	return export, nil
}

// checkSource validates the object that an export reads, and prepares the reference to another object.
func (e *Export) checkSource() error {
	from, into := e.FromResource, e.FromObjectReference
	if err := checkKind(e.configPath+".fromResource", from.APIVersion, from.Kind); err != nil {
		return err
	}
	if from.Name == "" {
		return newConfigError(e.configPath+".fromResource.name", "required")
	}
	if into == nil {
		return nil
	}
	if err := checkKind(e.configPath+".fromObjectRef", into.APIVersion, into.Kind); err != nil {
		return err
	}
	var err error
	if e.pathInto, err = jsonpath.Parse(into.JSONPath); err != nil {
		return newConfigError(e.configPath+".fromObjectRef.jsonPath", "%q %s", into.JSONPath, err.Error())
	}
	return nil
}
