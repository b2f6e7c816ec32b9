// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
)

const (
	maxLabel     = 63  // maximum length of a DNS label, which limits names of Services and values of labels
	maxSubdomain = 253 // maximum length of most other names
	hashLength   = 8
)

// Name returns a name for a child. It joins the item's name and the given parts with hyphens. For example, "shop" and
// "web" result in "shop-web".
//
// Two items in one namespace do not get the same name by chance, whatever their parts are. Because names of items may
// contain hyphens, the joined name is unambiguous only if there is exactly one part and this part contains no hyphen.
// In all other cases, for example for "shop" and "db-web", Name appends a hash of the item's name and the parts.
//
// The name is valid for every kind and as the value of a label: it begins with a letter, and has at most 63 characters
// from the set a-z, 0-9 and "-". If the joined name is not valid, Name changes or shortens it and appends a hash, so
// that different names stay different. The hash has 32 bits: it distinguishes names, but a user who may choose names
// of items and parts can search for two that have the same hash. Name is therefore not a boundary between users who do
// not trust each other. The same arguments always result in the same name.
func Name(item string, parts ...string) string {
	whole := newTuple(item, parts)
	name := strings.Map(labelRune, whole.joined)
	if name == "" || name[0] < 'a' || name[0] > 'z' {
		name = "x" + name
	}
	return whole.shorten(strings.TrimRight(name, "-"), maxLabel)
}

// LongName is like [Name], but the name may have up to 253 characters and may contain dots. Kinds such as ConfigMap,
// Secret and Deployment allow such names. Kinds such as Service do not. Do not use LongName either if a controller
// copies the name into a label, as the StatefulSet controller does, because labels are limited to 63 characters.
func LongName(item string, parts ...string) string {
	whole := newTuple(item, parts)
	labels := strings.Split(strings.ToLower(whole.joined), ".")
	for i, label := range labels {
		labels[i] = cmp.Or(strings.Trim(strings.Map(labelRune, label), "-"), "x")
	}
	return whole.shorten(strings.Join(labels, "."), maxSubdomain)
}

// labelRune returns the character of a DNS label that replaces a character of a name.
func labelRune(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
		return r
	case r >= 'A' && r <= 'Z':
		return r - 'A' + 'a'
	}
	return '-'
}

// tuple contains the name of an item and the parts of the name of a child.
type tuple struct {
	joined string
	// hashed is the text whose hash identifies the tuple. It equals joined if no other tuple needs the joined name.
	hashed string
}

func newTuple(item string, parts []string) tuple {
	all := append([]string{item}, parts...)
	joined := strings.Join(all, "-")
	if isAmbiguous(joined, parts) {
		return tuple{joined: joined, hashed: fmt.Sprintf("%q", all)}
	}
	return tuple{joined: joined, hashed: joined}
}

// hashLike matches a part that looks like a hash. The joined name could equal the name of a tuple with a hash.
var hashLike = regexp.MustCompile(fmt.Sprintf("^[0-9a-f]{%d}$", hashLength))

// isAmbiguous reports whether another tuple has the same joined name and a better claim to it. A joined name that
// contains hyphens belongs to the tuple whose only part is the text after the last hyphen.
func isAmbiguous(joined string, parts []string) bool {
	if !strings.Contains(joined, "-") {
		return false
	}
	return len(parts) != 1 || strings.Contains(parts[0], "-") || hashLike.MatchString(parts[0])
}

// shorten shortens a name to the given limit. If the name is too long or differs from the text that identifies the
// tuple, shorten also appends a hash of this text.
func (t tuple) shorten(name string, limit int) string {
	if name == t.hashed && len(name) <= limit {
		return name
	}
	sum := sha256.Sum256([]byte(t.hashed))
	if room := limit - hashLength - 1; len(name) > room {
		name = strings.TrimRight(name[:room], "-.")
	}
	return name + "-" + hex.EncodeToString(sum[:])[:hashLength]
}
