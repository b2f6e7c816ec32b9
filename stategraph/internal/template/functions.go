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

// unfit are functions of sprig that return something else each time, or depend on the machine. Each run would change
// objects that are made with them. Generate keys and certificates in a component that makes them once.
var unfit = []string{
	"bcrypt", "htpasswd", "derivePassword", "encryptAES", "decryptAES", "randBytes", "genPrivateKey", "buildCustomCert",
	"genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey",
	"randInt", "shuffle", "ago", "toDate", "mustToDate", "must_date_modify", "mustDateModify", "unixEpoch", "durationRound",
	"seq",
}

// These are bounds of what the configuration of an item can make a template do.
const (
	maxRepeat = 1 << 16 // characters or numbers that one function returns
	// MaxText is the maximum length of a rendered text, in bytes.
	MaxText = 1 << 20
)

// Functions returns what templates may call, namely the functions of sprig that always return the same, with bounds,
// and a few more.
func Functions() texttemplate.FuncMap {
	funcs := sprig.HermeticTxtFuncMap()
	for _, name := range unfit {
		delete(funcs, name)
	}
	maps.Copy(funcs, boundedFunctions(funcs))
	maps.Copy(funcs, texttemplate.FuncMap{
		"keys":      sortedKeys,
		"values":    sortedValues,
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

// number converts any number, because those of a configuration are int64.
func number(value any) int {
	out, err := strconv.Atoi(fmt.Sprint(value))
	if err != nil {
		return -1
	}
	return out
}

func repeat(times any, text string) (string, error) {
	count := number(times)
	if count < 0 || count > maxRepeat || len(text) > maxRepeat/max(count, 1) {
		return "", fmt.Errorf("repeat %v times: want at most %d characters in all", times, maxRepeat)
	}
	return strings.Repeat(text, count), nil
}

func nindent(by any, text string) (string, error) {
	out, err := indent(by, text)
	return "\n" + out, err
}

func indent(by any, text string) (string, error) {
	spaces := number(by)
	if spaces < 0 || spaces > 256 {
		return "", fmt.Errorf("indent by %v: want 0 to 256", by)
	}
	pad := strings.Repeat(" ", spaces)
	size := len(text) + (strings.Count(text, "\n")+1)*spaces
	return limited("indent", size, func() string { return pad + strings.ReplaceAll(text, "\n", "\n"+pad) })
}

// untilStep counts from start to just before stop, up or down.
func untilStep(from, to, by any) ([]int, error) {
	start, stop, step := number(from), number(to), number(by)
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
