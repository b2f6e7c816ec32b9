// SPDX-License-Identifier: Apache-2.0

package template

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	texttemplate "text/template"

	"github.com/Masterminds/sprig/v3"
	"sigs.k8s.io/yaml"
)

// unavailableFunctions lists the sprig functions that are not available in templates, because their results differ
// between calls or machines. With such a function, each run would change the objects.
var unavailableFunctions = []string{
	"bcrypt", "htpasswd", "derivePassword", "encryptAES", "decryptAES", "randBytes", "genPrivateKey", "buildCustomCert",
	"genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey",
	"randInt", "shuffle", "ago", "toDate", "mustToDate", "must_date_modify", "mustDateModify", "unixEpoch", "durationRound",
	"seq",
}

// These constants limit templates, because the configuration of an item is not trusted.
const (
	maxRepeat = 1 << 16 // maximum number of characters or list entries that one function returns
	// MaxText is the maximum length of a rendered text, in bytes.
	MaxText = 1 << 20
)

// NewFuncMap returns the functions that templates may call. These are the deterministic functions of sprig, some of
// them with limits, and a few more functions.
func NewFuncMap() texttemplate.FuncMap {
	funcs := sprig.HermeticTxtFuncMap()
	for _, name := range unavailableFunctions {
		delete(funcs, name)
	}
	maps.Copy(funcs, newLimitedFunctions(funcs))
	maps.Copy(funcs, texttemplate.FuncMap{
		"keys":      listKeys,
		"values":    listValues,
		"repeat":    repeat,
		"indent":    indent,
		"nindent":   nindent,
		"until":     func(count any) ([]int, error) { return untilStep(0, count, 1) },
		"untilStep": untilStep,
		"toYaml":    toYaml,
		"fromYaml":  fromYaml,
		"required":  required,
	})
	return funcs
}

// listKeys replaces the sprig function "keys". It returns the keys in a fixed order.
func listKeys(dicts ...map[string]any) []string {
	keys := []string{}
	for _, dict := range dicts {
		keys = append(keys, slices.Sorted(maps.Keys(dict))...)
	}
	return keys
}

// listValues replaces the sprig function "values". It returns the values in the order of their keys.
func listValues(dict map[string]any) []any {
	values := []any{}
	for _, key := range listKeys(dict) {
		values = append(values, dict[key])
	}
	return values
}

// toInt converts a number of any type to an int. Numbers in a configuration, for example, are of type int64. If the
// value is not a number, the result is -1.
func toInt(value any) int {
	out, err := strconv.Atoi(fmt.Sprint(value))
	if err != nil {
		return -1
	}
	return out
}

func repeat(times any, text string) (string, error) {
	count := toInt(times)
	if count < 0 || count > maxRepeat || len(text) > maxRepeat/max(count, 1) {
		return "", fmt.Errorf("repeat %v times: want at most %d characters in total", times, maxRepeat)
	}
	return strings.Repeat(text, count), nil
}

func nindent(by any, text string) (string, error) {
	out, err := indent(by, text)
	return "\n" + out, err
}

func indent(by any, text string) (string, error) {
	spaces := toInt(by)
	if spaces < 0 || spaces > 256 {
		return "", fmt.Errorf("indent by %v: want 0 to 256", by)
	}
	pad := strings.Repeat(" ", spaces)
	size := len(text) + (strings.Count(text, "\n")+1)*spaces
	return runLimited("indent", size, func() string { return pad + strings.ReplaceAll(text, "\n", "\n"+pad) })
}

// untilStep returns the integers from the first argument, inclusive, to the second argument, exclusive. The third
// argument is the step, which may be negative.
func untilStep(from, to, by any) ([]int, error) {
	start, stop, step := toInt(from), toInt(to), toInt(by)
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

// required returns the given value. If the value is nil or empty, required returns an error with the given message.
func required(message string, value any) (any, error) {
	if value == nil || value == "" {
		return nil, fmt.Errorf("%s", message)
	}
	return value, nil
}
