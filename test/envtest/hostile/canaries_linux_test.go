// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	. "github.com/onsi/gomega"

	"github.com/deployerkit/deployerkit/faultnet/hostile"
)

// canaries are the values of Secrets that must not appear in any output.
var canaries = map[string]string{
	"word":        "k4n4ry-wordsecret1",
	"ampersands":  "k4n&4ry2&&amper&sands&",
	"angles":      "<k4n4ry3>angles</k4n4ry3>",
	"quotes":      `k4n"4ry4'quo"''tes"`,
	"lines":       "k4n4ry5\nlines\r\n\tand more of it\n",
	"backslashes": `C:\new\k4n4ry6\\x41 \u0026 back`,
	"utf-8":       "pässwörd7-密码-🔑-ключ-k4n4ry",
	"url":         "https://me:k4n%40ry8+s@host/?a=1&b=%zz&c=&lt;",
	"pem":         "-----BEGIN RSA PRIVATE KEY-----\n" + pemLine + "\n" + strings.ToLower(pemLine) + "\n-----END RSA PRIVATE KEY-----\n",
	"base64":      base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k4n4ry9-secret/?\xff\xfe", 40))),
	"json":        `{"auths":{"r.example.com":{"auth":"azRuNHJ5OnNlY3JldA==","note":"k4n4ry0\nb \"c\" <d>"}}}`,
	"all":         "&<>\"'\\\n%41\\n&amp; k4n4ry11 密码",
}

const pemLine = "MIIEowIBAAKCAQEAk4n4ryu1kZp0x9Qv5r7T2mYb8cHs6dFjGkLzXoNiEaWtRyPu"

// window is the minimum number of letters and digits in a part of a canary that counts as a leak. A canary with fewer
// letters and digits counts only as a whole.
const window = 16

// detector finds canaries and parts of canaries in texts. It finds them in any form of quoting.
type detector struct {
	parts map[string]string // the keys are parts (letters and digits only); the values describe the leaks
	sizes map[int]bool      // the lengths of the parts
}

// newDetector returns a detector for the given values.
func newDetector(values map[string]string) *detector {
	d := &detector{parts: map[string]string{}, sizes: map[int]bool{}}
	for name, value := range values {
		half := len(value) / 2
		for quoting, quote := range hostile.QuoteFuncs() {
			added := filterLetters(quote(strings.Repeat("~", len(value)))) // the text that quoting adds to any value
			for part, text := range map[string]string{"": value, "the first half of ": value[:half], "the second half of ": value[half:]} {
				found := filterLetters(quote(text))
				found = found[sizeOfCommonPrefix(found, added):]
				size := min(window, len(found))
				for i := 0; i+size <= len(found) && size >= window/2; i++ {
					if one := found[i : i+size]; !strings.Contains(added, one) {
						d.parts[one], d.sizes[size] = part+name+" as "+quoting, true
					}
				}
			}
		}
	}
	return d
}

// sizeOfCommonPrefix returns the length of the common prefix of two texts.
func sizeOfCommonPrefix(a, b string) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// filterLetters returns the letters and digits of a text. It replaces each masked value by a separator.
func filterLetters(text string) string {
	out := make([]byte, 0, len(text))
	for _, c := range []byte(strings.ReplaceAll(text, "***", "\x00")) {
		if c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= 0x80 || c == 0 {
			out = append(out, c)
		}
	}
	return string(out)
}

// findLeaks returns the canaries in a text, each with the text around it. If the text contains JSON, findLeaks also
// searches the decoded JSON.
func (d *detector) findLeaks(where, text string) (found []string) {
	plain := filterLetters(text)
	for i := range plain {
		for size := range d.sizes {
			if what, leaked := d.parts[plain[i:min(i+size, len(plain))]]; leaked && len(found) < 5 {
				found = append(found, fmt.Sprintf("%s shows %s: …%s…", where, what, plain[max(0, i-80):min(len(plain), i+60)]))
			}
		}
	}
	return found
}

// findLeaksIn searches an object as JSON, and each text in the object.
func (d *detector) findLeaksIn(where string, object any) []string {
	raw, err := json.Marshal(object)
	Expect(err).NotTo(HaveOccurred())
	var tree any
	Expect(json.Unmarshal(raw, &tree)).To(Succeed())
	found := d.findLeaks(where, string(raw))
	for _, text := range listTexts(tree) {
		found = append(found, d.findLeaks(where, text)...)
	}
	return found
}

// listTexts returns all texts in a value.
func listTexts(value any) (out []string) {
	switch v := value.(type) {
	case string:
		return []string{v}
	case []any:
		for _, one := range v {
			out = append(out, listTexts(one)...)
		}
	case map[string]any:
		for key, one := range v {
			out = append(append(out, key), listTexts(one)...)
		}
	}
	return out
}
