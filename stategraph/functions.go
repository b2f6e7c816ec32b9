// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"sigs.k8s.io/yaml"
)

// unfit are functions of sprig that give something else each time, or depend on the machine: objects made with them
// would be changed by each run. Keys and certificates belong into what makes them once.
var unfit = []string{
	"bcrypt", "htpasswd", "derivePassword", "encryptAES", "decryptAES", "randBytes", "genPrivateKey", "buildCustomCert",
	"genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey",
	"randInt", "shuffle", "ago", "toDate", "mustToDate", "must_date_modify", "mustDateModify", "unixEpoch", "durationRound",
	"seq",
}

// Bounds of what a template can be made to do by the configuration of an item.
const (
	maxRepeat   = 1 << 16 // characters or numbers that one function makes
	maxRendered = 1 << 20 // bytes that a template makes
)

// functions returns what templates may call: those of sprig that give the same each time, with bounds, and a few more.
func functions() template.FuncMap {
	funcs := sprig.HermeticTxtFuncMap()
	for _, name := range unfit {
		delete(funcs, name)
	}
	maps.Copy(funcs, template.FuncMap{
		"keys":   sortedKeys,
		"values": sortedValues,
		"repeat": repeat,
		"indent": indent,
		"nindent": func(spaces int, text string) (string, error) {
			out, err := indent(spaces, text)
			return "\n" + out, err
		},
		"until":     func(count int) ([]int, error) { return untilStep(0, count, 1) },
		"untilStep": untilStep,
		"toYaml":    toYaml,
		"fromYaml":  fromYaml,
		"required":  required,
	})
	return funcs
}

// sortedKeys is sprig's keys in a fixed order.
func sortedKeys(dicts ...map[string]any) []string {
	keys := []string{}
	for _, dict := range dicts {
		keys = append(keys, slices.Sorted(maps.Keys(dict))...)
	}
	return keys
}

// sortedValues is sprig's values in the order of the keys.
func sortedValues(dict map[string]any) []any {
	values := []any{}
	for _, key := range sortedKeys(dict) {
		values = append(values, dict[key])
	}
	return values
}

func repeat(count int, text string) (string, error) {
	if count < 0 || count > maxRepeat || count*len(text) > maxRepeat {
		return "", fmt.Errorf("repeat %d times: the result is longer than %d", count, maxRepeat)
	}
	return strings.Repeat(text, count), nil
}

func indent(spaces int, text string) (string, error) {
	if spaces < 0 || spaces > 256 {
		return "", fmt.Errorf("indent by %d: want 0 to 256", spaces)
	}
	pad := strings.Repeat(" ", spaces)
	return pad + strings.ReplaceAll(text, "\n", "\n"+pad), nil
}

// untilStep counts from start to just before stop, up or down.
func untilStep(start, stop, step int) ([]int, error) {
	numbers := []int{}
	if step == 0 {
		return numbers, nil
	}
	for n := start; (step > 0 && n < stop) || (step < 0 && n > stop); n += step {
		if len(numbers) == maxRepeat {
			return nil, fmt.Errorf("count from %d to %d: more than %d numbers", start, stop, maxRepeat)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

func toYaml(value any) (string, error) {
	out, err := yaml.Marshal(value)
	return strings.TrimSuffix(string(out), "\n"), err
}

func fromYaml(text string) (any, error) {
	var value any
	err := yaml.Unmarshal([]byte(text), &value)
	return value, err
}

// required fails with a text when a value is nil or empty.
func required(message string, value any) (any, error) {
	if value == nil || value == "" {
		return nil, fmt.Errorf("%s", message)
	}
	return value, nil
}
