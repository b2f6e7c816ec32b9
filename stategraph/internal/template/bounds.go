// SPDX-License-Identifier: Apache-2.0

package template

import (
	"fmt"
	"regexp"
	"strings"
	texttemplate "text/template"
)

// boundedFunctions returns bounded versions of those functions of sprig whose result can be much larger than their
// arguments. Two values of a configuration, each of which fits into an item, must not produce gigabytes.
func boundedFunctions(sprig texttemplate.FuncMap) texttemplate.FuncMap {
	toStrings := sprig["toStrings"].(func(any) []string)             //nolint:forcetypeassert // TestTemplateFaults calls it
	wrapWith := sprig["wrapWith"].(func(int, string, string) string) //nolint:forcetypeassert // so here
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

// replaceMatches replaces what matches an expression. The replacement contains the match at most quotes times.
func replaceMatches(expression, text, by string, quotes int, replaced func(e *regexp.Regexp, text, by string) string) (string, error) {
	e, err := regexp.Compile(expression)
	if err != nil {
		return "", err
	}
	size := len(text)*(1+quotes) + len(e.FindAllStringIndex(text, -1))*len(by)
	return limited("replace matches", size, func() string { return replaced(e, text, by) })
}

// limited returns a text unless it would be longer than a template may render.
func limited(what string, size int, text func() string) (string, error) {
	if size > MaxText {
		return "", fmt.Errorf("%s: want at most %d characters in all", what, MaxText)
	}
	return text(), nil
}
