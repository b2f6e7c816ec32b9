// SPDX-License-Identifier: Apache-2.0

package template

import (
	"fmt"
	"regexp"
	"strings"
	texttemplate "text/template"
)

// boundedFunctions returns replacements for sprig functions whose results can be much larger than their arguments. The
// replacements limit the size of the result. Without a limit, a template could produce gigabytes from two short values
// of an item.
func boundedFunctions(sprig texttemplate.FuncMap) texttemplate.FuncMap {
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
			return limited("join", size, func() string { return strings.Join(parts, separator) })
		},
		"replace": func(old, by, text string) (string, error) {
			size := len(text) + strings.Count(text, old)*len(by)
			return limited("replace", size, func() string { return strings.ReplaceAll(text, old, by) })
		},
		"wrapWith": func(width int, separator, text string) (string, error) {
			return limited("wrapWith", len(text)*(1+len(separator)), func() string { return wrapWith(width, separator, text) })
		},
		"regexReplaceAll": replaceAll, "mustRegexReplaceAll": replaceAll,
		"regexReplaceAllLiteral": replaceAllLiteral, "mustRegexReplaceAllLiteral": replaceAllLiteral,
	}
}

// replaceMatches replaces each match of a regular expression with the text `by`. The replacement text may refer to the
// match, for example with "$0". The parameter `quotes` is the maximum number of such references in `by`.
func replaceMatches(expression, text, by string, quotes int, replaced func(e *regexp.Regexp, text, by string) string) (string, error) {
	e, err := regexp.Compile(expression)
	if err != nil {
		return "", err
	}
	size := len(text)*(1+quotes) + len(e.FindAllStringIndex(text, -1))*len(by)
	return limited("replace matches", size, func() string { return replaced(e, text, by) })
}

// limited calls the function `text` and returns the result. The parameter `size` is the length of the result. If it
// exceeds MaxText, limited returns an error without calling `text`.
func limited(what string, size int, text func() string) (string, error) {
	if size > MaxText {
		return "", fmt.Errorf("%s: want at most %d characters in total", what, MaxText)
	}
	return text(), nil
}
