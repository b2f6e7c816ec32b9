// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	maxLabel     = 63  // maximum length of a DNS label, which limits names of Services and values of labels
	maxSubdomain = 253 // maximum length of most other names
	hashLength   = 8
)

// Name returns a name for a child. It joins the item's name and the given parts. For example, "shop" and "web" result
// in "shop-web". Because the name begins with the item's name, two items in one namespace have different children.
//
// The name is valid for every kind and as the value of a label: it begins with a letter, and has at most 63 characters
// from the set a-z, 0-9 and "-". If the joined name is not valid, Name changes or shortens it and appends a hash of the
// joined name, so that different names stay different. The same arguments always result in the same name.
func Name(item string, parts ...string) string {
	whole := join(item, parts)
	name := strings.Map(labelRune, whole)
	if name == "" || name[0] < 'a' || name[0] > 'z' {
		name = "x" + name
	}
	return shorten(strings.TrimRight(name, "-"), whole, maxLabel)
}

// LongName is like [Name], but the name may have up to 253 characters and may contain dots. Kinds such as ConfigMap,
// Secret and Deployment allow such names. Kinds such as Service do not. Do not use LongName either if a controller
// copies the name into a label, as the StatefulSet controller does, because labels are limited to 63 characters.
func LongName(item string, parts ...string) string {
	whole := join(item, parts)
	labels := strings.Split(strings.ToLower(whole), ".")
	for i, label := range labels {
		labels[i] = cmp.Or(strings.Trim(strings.Map(labelRune, label), "-"), "x")
	}
	return shorten(strings.Join(labels, "."), whole, maxSubdomain)
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

func join(item string, parts []string) string {
	return strings.Join(append([]string{item}, parts...), "-")
}

// shorten shortens a name to the given limit. The parameter `whole` is the original name. If the name is too long or
// differs from the original name, shorten also appends a hash of the original name.
func shorten(name, whole string, limit int) string {
	if name == whole && len(name) <= limit {
		return name
	}
	sum := sha256.Sum256([]byte(whole))
	if room := limit - hashLength - 1; len(name) > room {
		name = strings.TrimRight(name[:room], "-.")
	}
	return name + "-" + hex.EncodeToString(sum[:])[:hashLength]
}
