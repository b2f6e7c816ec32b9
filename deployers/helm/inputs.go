// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/deployers/helm/chart"
)

// inputs identifies what a deployment depends on. Two deployments with equal inputs have the same result, apart from
// random functions, dates and lookups in templates.
type inputs struct {
	ChartDigest   string `json:"chartDigest,omitempty"`
	ValuesDigest  string `json:"valuesDigest,omitempty"`
	OptionsDigest string `json:"optionsDigest,omitempty"`
}

// resolveInputs resolves the chart of an item, and computes the digests of all inputs. The digests of the values and
// options are keyed with the UID of the item, so that digests of different items cannot be compared.
func (d *deployer) resolveInputs(ctx context.Context, r chart.Request, uid types.UID, config *Config) (inputs, chart.Identity, error) {
	id, err := d.options.Sources.Resolve(ctx, r)
	if err != nil {
		return inputs{}, id, chartError(err)
	}
	values, err := json.Marshal(config.Values) // sorts the keys, and writes equal numbers in the same way
	if err != nil {
		return inputs{}, id, newConfigError("values", "cannot be encoded")
	}
	options := fmt.Sprintf("%q %q %t %t %q %s", config.Name, config.Namespace, config.HelmDeployment, config.CreateNamespace, config.Strategy, config.Extension.inputsText())
	return inputs{ChartDigest: id.Digest, ValuesDigest: digest(uid, values), OptionsDigest: digest(uid, []byte(options))}, id, nil
}

// digest returns a short digest that is keyed with the UID of an item.
func digest(uid types.UID, data []byte) string {
	sum := hmac.New(sha256.New, []byte(uid))
	_, _ = sum.Write(data) // a hash returns no error
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil)[:18])
}

// chartError converts an error of package chart. A final error becomes an error of deployerlib.NewConfigError.
func chartError(err error) error {
	path := "chart"
	fault, ok := errors.AsType[*chart.Error](err)
	if ok && fault.Path != "" {
		path += "." + fault.Path
	}
	if ok && fault.Final {
		return newConfigError(path, "%s", fault.Error())
	}
	return fmt.Errorf("spec.config.%s: %w", path, err)
}
