// SPDX-License-Identifier: Apache-2.0

package template

import (
	"fmt"
	"regexp"
	"strings"
	texttemplate "text/template"
)

// newLimitedFunctions returns replacements for sprig functions whose results can be much larger than their arguments.
// The replacements limit the size of the result. Without a limit, a template could produce gigabytes from two short
// values of an item.
func newLimitedFunctions(sprig texttemplate.FuncMap) texttemplate.FuncMap {
	toStrings := sprig["toStrings"].(func(any) []string)             //nolint:forcetypeassert // TestTemplateFaults calls it
	wrapWith := sprig["wrapWith"].(func(int, string, string) string) //nolint:forcetypeassert // also checked by TestTemplateFaults
	replaceAll := func(expression, text, by string) (string, error) {
		return replaceMatches(expression, text, by, strings.Count(by, "$"), (*regexp.Regexp).ReplaceAllString)
	}
	replaceAllLiteral := func(expression, text, by string) (string, error) {
		return replaceMatches(expression, text, by, 0, (*regexp.Regexp).ReplaceAllLiteralString)
	}
	return texttemplate.FuncMap{
		"join": func(separator string, list any) (string, error) {
			parts := toStrings(list)
			size := len(parts) * len(separator)
			for _, part := range parts {
				size += len(part)
			}
			return runLimited("join", size, func() string { return strings.Join(parts, separator) })
		},
		"replace": func(old, by, text string) (string, error) {
			size := len(text) + strings.Count(text, old)*len(by)
			return runLimited("replace", size, func() string { return strings.ReplaceAll(text, old, by) })
		},
		"wrapWith": func(width int, separator, text string) (string, error) {
			return runLimited("wrapWith", len(text)*(1+len(separator)), func() string { return wrapWith(width, separator, text) })
		},
		"regexReplaceAll": replaceAll, "mustRegexReplaceAll": replaceAll,
		"regexReplaceAllLiteral": replaceAllLiteral, "mustRegexReplaceAllLiteral": replaceAllLiteral,
	}
}

// replaceMatches replaces each match of a regular expression with the text by. This text may refer to the match, for
// example with "$0". It contains at most quotes such references.
func replaceMatches(expression, text, by string, quotes int, replaced func(e *regexp.Regexp, text, by string) string) (string, error) {
	e, err := regexp.Compile(expression)
	if err != nil {
		return "", err
	}
	size := len(text)*(1+quotes) + len(e.FindAllStringIndex(text, -1))*len(by)
	return runLimited("replace matches", size, func() string { return replaced(e, text, by) })
}

// runLimited calls text and returns the result, which has the length size. If size exceeds MaxText, runLimited returns
// an error without calling text.
func runLimited(what string, size int, text func() string) (string, error) {
	if size > MaxText {
		return "", fmt.Errorf("%s: want at most %d characters in total", what, MaxText)
	}
	return text(), nil
}
