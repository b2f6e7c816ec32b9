// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	maxLabel     = 63  // of a DNS label, for names of Services and values of labels
	maxSubdomain = 253 // of most other names
	hashLength   = 8
)

// Name makes the name of a child from the item's name and more parts. For example, "shop" and "web" give "shop-web".
// Two items of one namespace then do not want the same child. The name fits every kind and the value of a label. It has
// at most 63 characters of a-z, 0-9 and "-", and begins with a letter. A name that has to be changed or cut for that
// ends in a hash of the whole name, so that it stays distinct. The same parts always give the same name.
func Name(item string, parts ...string) string {
	whole := join(item, parts)
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, whole)
	if name == "" || name[0] < 'a' || name[0] > 'z' {
		name = "x" + name
	}
	return shorten(strings.TrimRight(name, "-"), whole, maxLabel)
}

// LongName is [Name] for kinds whose names may have 253 characters and dots, such as ConfigMaps, Secrets and
// Deployments, but not Services. A controller that copies the name into a label, as that of StatefulSets does, is still
// limited to 63 characters.
func LongName(item string, parts ...string) string {
	whole := join(item, parts)
	labels := strings.Split(strings.ToLower(whole), ".")
	for i, label := range labels {
		label = strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
				return r
			}
			return '-'
		}, label)
		if label = strings.Trim(label, "-"); label == "" {
			label = "x"
		}
		labels[i] = label
	}
	return shorten(strings.Join(labels, "."), whole, maxSubdomain)
}

func join(item string, parts []string) string {
	return strings.Join(append([]string{item}, parts...), "-")
}

// shorten returns the name, with a hash if it is too long or differs from the whole name.
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
