// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestSummary(t *testing.T) {
	cases := map[string]struct {
		reason string
		in     []string
		want   []string // texts that the output must contain
		not    string   // a text that the output must not contain
		ok     bool
	}{
		"Passes": {
			reason: "a test with subtests is counted by its subtests; the output of what passed is not shown",
			in: []string{
				`{"Action":"run","Package":"p","Test":"TestA"}`,
				`{"Action":"run","Package":"p","Test":"TestA/x"}`,
				`{"Action":"output","Package":"p","Test":"TestA/x","Output":"chatter\n"}`,
				`{"Action":"run","Package":"p","Test":"TestA/y"}`,
				`{"Action":"pass","Package":"p","Test":"TestA/x"}`,
				`{"Action":"pass","Package":"p","Test":"TestA/y"}`,
				`{"Action":"pass","Package":"p","Test":"TestA"}`,
				`{"Action":"pass","Package":"p","Elapsed":1.5}`,
				`{"Action":"skip","Package":"empty"}`,
			},
			want: []string{"ok    p  1.5s\n", "2 passed, 0 failed, 0 skipped\n"}, not: "chatter", ok: true,
		},
		"Fails": {
			reason: "the output of what failed is shown, and a failed subtest is counted once",
			in: []string{
				`{"Action":"run","Package":"p","Test":"TestA/x"}`,
				`{"Action":"output","Package":"p","Test":"TestA/x","Output":"x_test.go:1: boom\n"}`,
				`{"Action":"fail","Package":"p","Test":"TestA/x"}`,
				`{"Action":"fail","Package":"p","Test":"TestA"}`,
				`{"Action":"fail","Package":"p"}`,
			},
			want: []string{"boom", "FAIL  p", "0 passed, 1 failed, 0 skipped\n"}, not: "broken",
		},
		"ParentFailsAlone": {
			reason: "the body of a test may fail while all its subtests pass",
			in: []string{
				`{"Action":"run","Package":"p","Test":"TestA/x"}`,
				`{"Action":"pass","Package":"p","Test":"TestA/x"}`,
				`{"Action":"fail","Package":"p","Test":"TestA"}`,
				`{"Action":"fail","Package":"p"}`,
			},
			want: []string{"1 passed, 1 failed, 0 skipped\n"},
		},
		"Skips": {
			reason: "go test would be content",
			in: []string{
				`{"Action":"pass","Package":"p","Test":"TestA"}`,
				`{"Action":"skip","Package":"p","Test":"TestB"}`,
				`{"Action":"pass","Package":"p"}`,
			},
			want: []string{"skipped in p: TestB\n", "1 passed, 0 failed, 1 skipped\n"},
		},
		"Ginkgo": {
			reason: "specs are counted, not the function that runs them",
			in: []string{
				`{"Action":"output","Package":"p","Test":"TestS","Output":"\u001b[1mSUCCESS!\u001b[0m -- \u001b[1m9 Passed\u001b[0m | 0 Failed | 0 Pending | 0 Skipped\n"}`,
				`{"Action":"pass","Package":"p","Test":"TestS"}`,
				`{"Action":"pass","Package":"p"}`,
			},
			want: []string{"9 passed, 0 failed, 0 skipped\n"}, ok: true,
		},
		"GinkgoSkips": {
			reason: "pending and skipped specs do not fail a suite, but they fail us",
			in: []string{
				`{"Action":"output","Package":"p","Test":"TestS","Output":"SUCCESS! -- 9 Passed | 0 Failed | 1 Pending | 2 Skipped\n"}`,
				`{"Action":"pass","Package":"p","Test":"TestS"}`,
				`{"Action":"pass","Package":"p"}`,
			},
			want: []string{"skipped in p: TestS (3 specs)\n", "9 passed, 0 failed, 3 skipped\n"},
		},
		"GinkgoFailsOutsideOfSpecs": {
			reason: "a BeforeSuite that fails is one failure",
			in: []string{
				`{"Action":"output","Package":"p","Test":"TestS","Output":"FAIL! -- 0 Passed | 0 Failed | 0 Pending | 2 Skipped\n"}`,
				`{"Action":"fail","Package":"p","Test":"TestS"}`,
				`{"Action":"fail","Package":"p"}`,
			},
			want: []string{"0 passed, 1 failed, 2 skipped\n"},
		},
		"NoBuild": {
			reason: "a package that does not build has no failed test",
			in: []string{
				`{"ImportPath":"p [p.test]","Action":"build-output","Output":"p/x.go:1: undefined: y\n"}`,
				`{"Action":"pass","Package":"q","Test":"TestA"}`,
				`{"Action":"fail","Package":"p","FailedBuild":"p [p.test]"}`,
			},
			want: []string{"undefined: y", "broken (build error, panic, data race or time limit): p\n", "1 passed, 1 failed, 0 skipped\n"},
		},
		"Dies": {
			reason: "what a test said whose process ended is shown",
			in: []string{
				`{"Action":"run","Package":"p","Test":"TestA"}`,
				`{"Action":"output","Package":"p","Test":"TestA","Output":"fatal error: all goroutines are asleep\n"}`,
				`{"Action":"fail","Package":"p"}`,
			},
			want: []string{"all goroutines are asleep", "0 passed, 1 failed, 0 skipped\n"},
		},
		"Nothing": {
			reason: "no test is no success",
			in:     []string{`{"Action":"skip","Package":"empty"}`, `not json`},
			want:   []string{"not json\n", "no test ran\n", "0 passed, 0 failed, 0 skipped\n"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			s := newSummary(&out, func(string, []string) {})
			if err := s.read(strings.NewReader(strings.Join(tc.in, "\n") + "\n")); err != nil {
				t.Fatal(err)
			}
			s.finish()
			for _, want := range tc.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%s: output has no %q:\n%s", tc.reason, want, out.String())
				}
			}
			if tc.not != "" && strings.Contains(out.String(), tc.not) {
				t.Errorf("%s: output has %q:\n%s", tc.reason, tc.not, out.String())
			}
			if s.ok() != tc.ok {
				t.Errorf("%s: got ok=%t, want %t", tc.reason, s.ok(), tc.ok)
			}
		})
	}
}
