// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	cases := map[string]struct {
		in      []string
		failure string
		unbuilt string
		passed  int
	}{
		"passes": {
			in:     []string{`{"Action":"pass","Package":"p","Test":"TestA"}`, `{"Action":"pass","Package":"p"}`},
			passed: 1,
		},
		"a failed subtest is named": {
			in: []string{
				`{"Action":"fail","Package":"p","Test":"TestA"}`, `{"Action":"fail","Package":"p","Test":"TestA/x"}`,
				`{"Action":"fail","Package":"p","Test":"TestA/y"}`, `{"Action":"fail","Package":"p"}`,
			},
			failure: "TestA/x",
		},
		"a failed test is named": {
			in:      []string{`{"Action":"fail","Package":"p","Test":"TestA"}`, `{"Action":"fail","Package":"p","Test":"TestAB/x"}`},
			failure: "TestA",
		},
		"dies": {
			in:      []string{`{"Action":"fail","Package":"p"}`, "no event"},
			failure: "a panic or the time limit of p",
		},
		"does not build": {
			in: []string{
				`{"ImportPath":"p","Action":"build-output","Output":"# p\n"}`, `{"ImportPath":"p","Action":"build-output","Output":"a.go:1: no\n"}`,
				`{"Action":"fail","Package":"p","FailedBuild":"p"}`,
			},
			unbuilt: "a.go:1: no",
		},
		"a failed spec is named": {
			in: []string{
				`{"Action":"output","Package":"p","Test":"TestS","Output":"  \u001b[38;5;9m[FAIL]\u001b[0m A \u001b[1m[It] does it [L1]\u001b[0m\n"}`,
				`{"Action":"output","Package":"p","Test":"TestS","Output":"FAIL! -- 4 Passed | 1 Failed | 0 Pending | 9 Skipped\n"}`,
				`{"Action":"fail","Package":"p","Test":"TestS"}`,
			},
			failure: "A [It] does it [L1]", passed: 3,
		},
		"a focus that matches no spec": {
			in: []string{
				`{"Action":"output","Package":"p","Test":"TestS","Output":"SUCCESS! -- 0 Passed | 0 Failed | 0 Pending | 9 Skipped\n"}`,
				`{"Action":"pass","Package":"p","Test":"TestS"}`,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v, err := read(strings.NewReader(strings.Join(tc.in, "\n")))
			if err != nil || v.failure() != tc.failure || v.unbuilt != tc.unbuilt || v.passed != tc.passed {
				t.Errorf("got %q, %q, %d and %v", v.failure(), v.unbuilt, v.passed, err)
			}
		})
	}
}
