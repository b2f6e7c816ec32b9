// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	maxLabel     = 63  // of a DNS label: names of Services, values of labels
	maxSubdomain = 253 // of most other names
	hashLength   = 8
)

// Name makes the name of a child from the item's name and more parts: "shop", "web" gives "shop-web". Two items of one
// namespace then do not want the same child. The name fits every kind and the value of a label: at most 63 of a-z, 0-9
// and "-", beginning with a letter. A name that has to be changed or cut for that ends in a hash of the whole, so
// that it stays distinct. The same parts always give the same name.
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

// LongName is [Name] for kinds whose names may have 253 characters and dots: ConfigMaps, Secrets, Deployments, but not
// Services. Whatever copies the name into a label (a StatefulSet does) still has only 63.
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

// shorten returns the name, with a hash when it is not the whole or too long.
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
