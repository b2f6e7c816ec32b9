// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"errors"
	"os"

	"github.com/google/shlex"
)

// commandLine is a command with its arguments, which may contain placeholders.
type commandLine []string

// parseCommandLine splits a command line into words as a shell does, but without expansions.
func parseCommandLine(line string) (commandLine, error) {
	words, err := shlex.Split(line)
	switch {
	case err != nil:
		return nil, errors.New("a quote is not closed, or a backslash is the last character")
	case len(words) == 0:
		return nil, errors.New("is empty")
	}
	return words, nil
}

// replaceIn returns the words of the command line with the placeholders replaced.
func (w commandLine) replaceIn(values placeholders) []string {
	words := make([]string, 0, len(w))
	for _, word := range w {
		words = append(words, values.replaceIn(word))
	}
	return words
}

// newEnvironment returns the environment variables of this process, followed by KUBECONFIG.
func newEnvironment(kubeconfig string) []string {
	return append(os.Environ(), "KUBECONFIG="+kubeconfig)
}
