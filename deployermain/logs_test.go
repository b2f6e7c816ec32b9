// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// runAndGetLogs returns the log of a program that was started with the given flags.
func runAndGetLogs(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	log, err := parse(t, args...).logs.newLoggerTo(&out)
	log.V(2).Info("two")
	log.V(1).Info("debugging")
	log.Info("informing")
	log.Error(errors.New("boom"), "failing")
	return out.String(), err
}

func TestLogFlagsOfLandscaper(t *testing.T) {
	for name, tc := range map[string]struct {
		args          []string
		want, without []string
	}{
		"defaults [O26]":                   {nil, []string{`{"level":"info",`, `"msg":"informing"`, `"ts":"2`, "failing"}, []string{"debugging", "logs_test.go", "goroutine", "stacktrace"}},
		"error [O26]":                      {[]string{"-v=error"}, []string{"failing"}, []string{"informing"}},
		"info, as words [O26]":             {[]string{"--verbosity", "INFO"}, []string{"informing"}, []string{"debugging"}},
		"debug [O26]":                      {[]string{"-v=Debug"}, []string{"debugging"}, []string{"two"}},
		"a number [O26]":                   {[]string{"-v=2"}, []string{"two"}, nil},
		"a large number [O26]":             {[]string{"-v", "10"}, []string{"two"}, nil},
		"text [O26]":                       {[]string{"-f=Text"}, []string{"info\tinforming"}, []string{"{\"level\""}},
		"json [O26]":                       {[]string{"--format", "json", "--dev"}, []string{`"msg":"debugging"`}, nil},
		"dev [O26]":                        {[]string{"--dev"}, []string{"debug\t", "debugging", "logs_test.go", "TestLogFlagsOfLandscaper"}, []string{"{\"level\""}},
		"dev without both [O26]":           {[]string{"--dev", "--disable-caller", "--disable-stacktrace"}, []string{"debugging"}, []string{"logs_test.go"}},
		"cli [O26]":                        {[]string{"--cli"}, []string{"\x1b[34mINFO\x1b[0m\tinforming"}, []string{"20"}},
		"cli with time [O26]":              {[]string{"--cli", "--disable-timestamp=false"}, []string{"Z\t"}, nil},
		"without time [O26]":               {[]string{"--disable-timestamp"}, []string{"informing"}, []string{`"ts"`}},
		"stack traces [O26]":               {[]string{"--disable-stacktrace=false"}, []string{"stacktrace"}, nil},
		"callers [O26]":                    {[]string{"--disable-caller=false"}, []string{"logs_test.go"}, []string{"stacktrace"}},
		"the level of zap precedes":        {[]string{"-v=error", "--zap-log-level=debug"}, []string{"debugging"}, nil},
		"the development mode of zap":      {[]string{"--zap-devel"}, []string{"DEBUG\tdebugging"}, []string{"{\"level\""}},
		"the encoder of zap precedes":      {[]string{"-f=json", "--zap-encoder=console"}, []string{"INFO\tinforming"}, nil},
		"the stack traces of zap":          {[]string{"--zap-stacktrace-level=error"}, []string{"stacktrace"}, nil},
		"the time encoding of zap":         {[]string{"--zap-time-encoding=epoch"}, []string{`"ts":1`}, []string{`"ts":"`}},
		"a number in the development mode": {[]string{"--dev", "-v=0"}, []string{"informing"}, []string{"debugging"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := runAndGetLogs(t, tc.args...)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range tc.want {
				if !strings.Contains(out, text) {
					t.Errorf("%q is missing in\n%s", text, out)
				}
			}
			for _, text := range tc.without {
				if strings.Contains(out, text) {
					t.Errorf("%q must not be in\n%s", text, out)
				}
			}
		})
	}
	for flag, want := range map[string]string{"-v=loud": "want error, info, debug", "-v=-1": "want error, info, debug", "--format=xml": "want json or text"} {
		t.Run("rejects "+flag+" [O26]", func(t *testing.T) {
			if _, err := runAndGetLogs(t, flag); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: want an error with %q, got %v", flag, want, err)
			}
		})
	}
}

func TestValuesOfLoggers(t *testing.T) {
	t.Run("a message contains the values of its logger, and no values of loggers that share a parent [F47]", func(t *testing.T) {
		var out bytes.Buffer
		log, err := parse(t).logs.newLoggerTo(&out)
		if err != nil {
			t.Fatal(err)
		}
		parent := log.WithValues("a", 1)
		first, second := parent.WithValues("b", 2), parent.WithValues("c", 3)
		first.Info("first", "d", 4)
		second.V(1).Info("hidden")
		second.Info("second")
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 2 {
			t.Fatalf("want two messages, got %q", lines)
		}
		for i, want := range []string{`"msg":"first","a":1,"b":2,"d":4}`, `"msg":"second","a":1,"c":3}`} {
			if !strings.HasSuffix(lines[i], want) {
				t.Errorf("want a message that ends with %s, got %s", want, lines[i])
			}
		}
	})
}
