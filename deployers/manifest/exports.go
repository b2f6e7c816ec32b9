// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"cmp"
	"fmt"

	"github.com/deployerkit/deployerkit/apply/jsonpath"
)

// setExports checks and prepares the exports.
func (c *Config) setExports(in *wireExports, opts Options) error {
	if in == nil {
		return nil
	}
	fallback, err := bound("exports.defaultTimeout", in.DefaultTimeout)
	if err != nil {
		return err
	}
	for i := range in.Exports {
		at := fmt.Sprintf("exports.exports[%d]", i)
		export, err := prepare(at, &in.Exports[i])
		if err != nil {
			return err
		}
		export.Timeout = cmp.Or(export.Timeout, fallback, opts.ExportTimeout)
		c.Exports = append(c.Exports, *export)
	}
	return nil
}

// prepare checks one export.
func prepare(at string, in *wireExport) (*Export, error) {
	export := &Export{Export: in.Export}
	var err error
	if export.Timeout, err = bound(at+".timeout", in.Timeout); err != nil {
		return nil, err
	}
	if export.key, err = jsonpath.ParseKey(in.Key); err != nil {
		return nil, fault(at+".key", "%q %s", in.Key, err.Error())
	}
	if export.path, err = jsonpath.Parse(in.JSONPath); err != nil {
		return nil, fault(at+".jsonPath", "%q %s", in.JSONPath, err.Error())
	}
	if in.TargetName != nil && *in.TargetName == "" {
		return nil, fault(at+".targetName", "must not be empty")
	}
	from := in.FromResource
	if from == nil {
		return nil, fault(at+".fromResource", "required: there is nothing else to export from")
	}
	if err := checkType(at+".fromResource", from.APIVersion, from.Kind); err != nil {
		return nil, err
	}
	if from.Name == "" {
		return nil, fault(at+".fromResource.name", "required")
	}
	into := in.FromObjectReference
	if into == nil {
		return export, nil
	}
	if err := checkType(at+".fromObjectRef", into.APIVersion, into.Kind); err != nil {
		return nil, err
	}
	if export.pathInto, err = jsonpath.Parse(into.JSONPath); err != nil {
		return nil, fault(at+".fromObjectRef.jsonPath", "%q %s", into.JSONPath, err.Error())
	}
	return export, nil
}
