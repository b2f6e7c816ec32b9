// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/deployerkit/deployerkit/internal/testtime"
	"github.com/deployerkit/deployerkit/targets"
)

const (
	// largest is approximately the size, in bytes, of the largest object that an API server accepts.
	largest = 3 << 19
	// readBudget is the maximum memory, in bytes, that reading a Target may allocate in total.
	readBudget = 16 << 20
)

// newAliases returns a document that contains one long text once and refers to it with many aliases.
func newAliases(size int) string {
	return "preferences:\n  a: &a \"" + strings.Repeat("x", size/2) + "\"\n  b: [" + strings.TrimSuffix(strings.Repeat("*a,", size/6), ",") + "]\n" +
		newKubeconfig(okCluster, okUser, "")
}

// newDocument returns a text that is as large as the largest Target. The text consists of `before`, as many copies of
// `piece` as fit, and `after`.
func newDocument(before, piece, after string) string {
	return before + strings.Repeat(piece, (largest-len(before)-len(after))/len(piece)) + after
}

func newLargeDocuments() map[string]string {
	comma := func(piece string) string { return newDocument("[", piece+",", piece+"]") }
	return map[string]string{
		"aliases, 70 KB":         newAliases(70_000),
		"aliases, 430 KB":        newAliases(430_000),
		"aliases of aliases":     newAliasBomb(),
		"aliases, largest":       newAliases(largest - 1000),
		"text to be escaped":     newDocument(`preferences: {a: "`, "<", "\"}\n"+newKubeconfig(okCluster, okUser, "")),
		"one long token":         newKubeconfig(okCluster, `token: "`+strings.Repeat("x", largest-1000)+`"`, ""),
		"a token full of dashes": newKubeconfig(okCluster, `token: "`+strings.Repeat("-", largest-1000)+`"`, ""),
		"one long CA":            newKubeconfig(okCluster+", certificate-authority-data: "+strings.Repeat("QUJD", largest/4-250), okUser, ""),
		"empty lists":            comma("[]"),
		"empty objects":          comma("{}"),
		"numbers":                comma("1"),
		"nulls":                  comma("~"),
		"quoted":                 comma(`""`),
		"nested lists":           newDocument("", "[", ""),
		"nested objects":         newDocument("", `{"a":`, ""),
		"nested blocks":          newDocument("", "- ", ""),
		"blocks":                 newDocument("", "-\n", ""),
		"keys":                   newDocument("", "? \n", ""),
		"empty lines":            newDocument("", "\n", ""),
		"comments":               newDocument("", "#\n", "a: b"),
		"comments at a list":     newDocument("a:\n", "#\n", "- b"),
		"indented comments":      newDocument("a:\n", "   #x\n", "  b: c\n"),
		"one comment":            newDocument("#", "x", ""),
		"spaces":                 newDocument("", " ", ""),
		"a folded text":          newDocument("a: >\n", " x\n\n", ""),
		"a literal text":         newDocument("a: |\n", " x\n", ""),
		"a plain text":           newDocument("a: x\n", "  x\n", ""),
		"documents":              newDocument("", "---\n", ""),
		"tags":                   newDocument("", "!a ", ""),
		"tag directives":         newDocument("", "%TAG !a! b\n", ""),
		"anchors":                newDocument("", "&a ", ""),
		"keys, unfinished":       newDocument("{", "a ", ""),
		"escapes":                newDocument(`a: "`, `\n`, `"`),
		"wide characters":        newDocument("a: ", "é", ""),
		"UTF-16":                 newDocument("\xff\xfe", "a\x00", ""),
		"merge keys":             newDocument("a: &a {b: c}\n<<: [", "*a,", "*a]"),
	}
}

// TestReadingATargetLimitsMemory checks that reading a Target never takes more than readBudget, whatever the Target
// contains.
func TestReadingATargetLimitsMemory(t *testing.T) {
	p := newPool(t, targets.PoolOptions{MinPause: time.Hour, MaxPause: time.Hour})
	for name, text := range newLargeDocuments() {
		t.Run("bounds the memory for "+name+" [F1]", func(t *testing.T) {
			inner, err := json.Marshal(map[string]string{"kubeconfig": text})
			if err != nil {
				t.Fatal(err)
			}
			for form, content := range map[string]string{"bare": text, "wrapped": string(inner[:min(len(inner), 2*largest)])} {
				r, _, _ := newTestResolver(map[string]string{"kubeconfig": content})
				for source, read := range map[string]func() error{
					"inline": func() error { _, err := p.Get(t.Context(), newResolvedTarget(name, content)); return err },
					"RESTConfig": func() error {
						_, err := targets.RESTConfigFromKubeconfig([]byte(content), targets.Policy{})
						return err
					},
					"of a secret": func() error {
						_, err := r.Resolve(t.Context(), newTarget("creds", ""))
						return err
					},
				} {
					start := time.Now()
					allocated, err := measureAllocations(read)
					if took := time.Since(start); took > testtime.ScaleTimeout(5*time.Second) {
						t.Errorf("%s, %s: took %s", form, source, took)
					}
					if allocated > readBudget {
						t.Errorf("%s, %s: allocates %d MiB for %d KiB (%v)", form, source, allocated>>20, len(content)>>10, err)
					}
					if err != nil && (strings.ContainsAny(err.Error(), "\n\r") || len(err.Error()) > 300) {
						t.Errorf("%s, %s: the error is not one short line: %.400q", form, source, err)
					}
				}
			}
		})
	}
}

// measureAllocations returns the total number of bytes that f allocates, including memory that is freed again.
func measureAllocations(f func() error) (uint64, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, err
}

// TestAmbiguousDocumentIsRejected checks that an ambiguous document is rejected wherever a Target may contain it.
func TestAmbiguousDocumentIsRejected(t *testing.T) {
	good := newKubeconfig(okCluster, okUser, "")
	for name, text := range map[string]string{
		"an alias of a text [F1]":                   "preferences: {a: &x y, b: *x}\n" + good,
		"an anchor that is not used [F1]":           "preferences: {a: &x y}\n" + good,
		"a merge key [F1]":                          "preferences: {<<: {a: b}}\n" + good,
		"a second document [F1]":                    good + "\n---\n" + good,
		"a second document that is empty [F1]":      good + "\n---\n",
		"a document after an end marker [F1]":       good + "\n...\n" + good,
		"JSON after JSON [F1]":                      "{}{}",
		"a key twice [F1]":                          "preferences: {a: 1, a: 2}\n" + good,
		"a nested key that occurs twice [F1]":       "preferences: {x: [{a: 1, \"a\": 2}]}\n" + good,
		"a key that occurs twice in JSON [F1]":      `{"preferences":{"a":1,"a":2}}`,
		"a number and an equal string as keys [F1]": "preferences: {1: 1, \"1\": 2}\n" + good,
		"a custom tag [F1]":                         "preferences: !x {a: 1}\n" + good,
		"very deep [F1]":                            "preferences: " + strings.Repeat("[", 200) + strings.Repeat("]", 200) + "\n" + good,
		"UTF-16 [F1]":                               "\xff\xfe" + strings.Join(strings.Split(good, ""), "\x00") + "\x00",
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			_, err := targets.RESTConfigFromKubeconfig([]byte(text), targets.Policy{})
			if fault, ok := errors.AsType[*targets.ConfigError](err); !ok || fault.Field != "kubeconfig" {
				t.Errorf("error %v, want one of field kubeconfig", err)
			}
			r, _, _ := newTestResolver(map[string]string{"kubeconfig": text})
			_, err = r.Resolve(t.Context(), newTarget("creds", ""))
			if fault, ok := errors.AsType[*targets.ResolveError](err); !ok || fault.Reason != targets.ReasonContentInvalid {
				t.Errorf("of a secret without a key: error %v, want invalid content", err)
			}
		})
	}
}

func TestPortsAreValidated(t *testing.T) {
	for _, port := range []string{"0", "65536", "99999999", "00000000000000000000443", "", "-1"} {
		t.Run(fmt.Sprintf("port %q is rejected [F1] [F11]", port), func(t *testing.T) {
			for field, cluster := range map[string]string{
				"clusters[0].cluster.server":    fmt.Sprintf("server: %q", "https://api.example.com:"+port),
				"clusters[0].cluster.proxy-url": okCluster + fmt.Sprintf(", proxy-url: %q", "http://proxy.example.com:"+port),
			} {
				_, err := targets.RESTConfigFromKubeconfig([]byte(newKubeconfig(cluster, okUser, "")), targets.Policy{AllowProxy: true})
				if fault, ok := errors.AsType[*targets.ConfigError](err); !ok || fault.Field != field {
					t.Errorf("error %v, want one of field %s", err, field)
				}
			}
		})
	}
	for _, port := range []string{"1", "443", "65535"} {
		if _, err := targets.RESTConfigFromKubeconfig([]byte(newKubeconfig(fmt.Sprintf("server: %q", "https://api.example.com:"+port), okUser, "")), targets.Policy{}); err != nil {
			t.Errorf("port %s: %v", port, err)
		}
	}
}

func TestOwnHostsAreRejected(t *testing.T) {
	for _, host := range []string{
		"[fd20:ce::254]", "[fd00:ec2::254]", "[fd00:ec2::23]", "[fd00:ec2::253]", "[fd00:c1::a9fe:a9fe]", "[64:ff9b:1::a9fe:a9fe]", "[64:ff9b:1:abcd::7f00:1]",
		"[2002:7f00:1::1]", "[2002:a9fe:a9fe::]", "[2002:808:808::1]", "[2001:0:7f00:1::1]", "[::ffff:0:7f00:1]", "[::ffff:0:169.254.169.254]", "192.0.0.192",
	} {
		t.Run("refuses "+host+" [F11]", func(t *testing.T) {
			text := []byte(newKubeconfig(fmt.Sprintf("server: %q", "https://"+host), okUser, ""))
			_, err := targets.RESTConfigFromKubeconfig(text, targets.Policy{})
			if fault, ok := errors.AsType[*targets.ConfigError](err); !ok || fault.Field != "clusters[0].cluster.server" {
				t.Errorf("error %v, want one of the server", err)
			}
			if _, err := targets.RESTConfigFromKubeconfig(text, targets.Policy{AllowPrivateHosts: true}); err != nil {
				t.Errorf("the operator allows it: %v", err)
			}
		})
	}
	for _, host := range []string{"[2001:db8::1]", "[fd00::1]", "[fd20:1::1]", "[64:ff9b::808:808]", "192.0.1.1", "10.0.0.1"} {
		if _, err := targets.RESTConfigFromKubeconfig([]byte(newKubeconfig(fmt.Sprintf("server: %q", "https://"+host), okUser, "")), targets.Policy{}); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
}
