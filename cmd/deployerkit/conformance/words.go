// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"errors"
	"os"
	"strings"
)

// commandLine is a command as words, with placeholders.
type commandLine []string

// parse splits a command line into words as a shell does: quotes keep blanks, a backslash keeps what follows it, except
// within single quotes. Nothing is expanded.
func parse(line string) (commandLine, error) {
	var words commandLine
	word, quote, escaped, begun := strings.Builder{}, rune(0), false, false
	for _, r := range line {
		switch {
		case escaped:
			escaped = false
			word.WriteRune(r)
		case r == '\\' && quote != '\'':
			escaped, begun = true, true
		case r == quote && quote != 0:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, begun = r, true
		case quote == 0 && strings.ContainsRune(" \t\n", r):
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			begun = true
			word.WriteRune(r)
		}
	}
	if quote != 0 || escaped {
		return nil, errors.New("a quote is not closed, or a backslash is the end")
	}
	if begun {
		words = append(words, word.String())
	}
	if len(words) == 0 {
		return nil, errors.New("is empty")
	}
	return words, nil
}

// with replaces the placeholders.
func (w commandLine) with(values placeholders) []string {
	words := make([]string, 0, len(w))
	for _, word := range w {
		words = append(words, values.in(word))
	}
	return words
}

// environment is ours, with KUBECONFIG set.
func environment(kubeconfig string) []string { return append(os.Environ(), "KUBECONFIG="+kubeconfig) }
