// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"errors"
	"os"

	"github.com/google/shlex"
)

// commandLine is a command as a list of words, with placeholders.
type commandLine []string

// parse splits a command line into words as a shell does. Nothing is expanded.
func parse(line string) (commandLine, error) {
	words, err := shlex.Split(line)
	switch {
	case err != nil:
		return nil, errors.New("a quote is not closed, or a backslash is the end")
	case len(words) == 0:
		return nil, errors.New("is empty")
	}
	return words, nil
}

// with returns the words with the placeholders replaced.
func (w commandLine) with(values placeholders) []string {
	words := make([]string, 0, len(w))
	for _, word := range w {
		words = append(words, values.in(word))
	}
	return words
}

// environment returns the environment of this process with KUBECONFIG set.
func environment(kubeconfig string) []string { return append(os.Environ(), "KUBECONFIG="+kubeconfig) }
