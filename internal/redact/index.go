// SPDX-License-Identifier: Apache-2.0

package redact

import "math/bits"

const (
	// part is the length, in bytes, of the parts into which long values are divided. Each part of a value is searched for
	// separately.
	part = 16
	// large is the maximum length of a value for which the index contains the parts that begin at every position. For a
	// longer value, the index contains only the parts that begin at multiples of `stride`, and the last part.
	large  = 16 << 10
	stride = 8
	// factor is the base of the rolling hash of a text.
	factor = 0x9e3779b97f4a7c15
)

// powers contains the powers of `factor`, by exponent.
var powers = func() (out [part + 1]uint64) {
	out[0] = 1
	for i := range part {
		out[i+1] = out[i] * factor
	}
	return out
}()

// index finds parts of values by their hashes. If two texts have the same hash, too much may be hidden, but never too
// little.
type index struct {
	head  int                 // the minimum length of a value
	heads map[uint64]uint32   // maps the hash of the first `head` bytes of a part to a bit set of part lengths
	parts map[uint64]struct{} // hashes of short values, and of the parts of longer values
}

func newIndex(shortest int) index {
	return index{head: shortest, heads: map[uint64]uint32{}, parts: map[uint64]struct{}{}}
}

func (x *index) isEmpty() bool { return len(x.parts) == 0 }

func (x *index) size() int { return len(x.parts) }

// add adds a value. The value must have at least x.head bytes.
func (x *index) add(value []byte) {
	sums := hashPrefixes(value)
	n, step := min(len(value), part), 1
	if len(value) > large {
		step = stride
	}
	last := len(value) - n
	for i := 0; i < last; i += step {
		x.addPart(sums, i, n)
	}
	x.addPart(sums, last, n)
}

func (x *index) addPart(sums []uint64, i, n int) {
	x.heads[sum(sums, i, x.head)] |= 1 << n
	x.parts[key(sums, i, n)] = struct{}{}
}

// find searches a stream for parts of the values, and calls `found` for each of them.
func (x *index) find(in stream, found func(span)) {
	if x.isEmpty() {
		return
	}
	sums := hashPrefixes(in.bytes)
	until := int32(0) // all bytes before this position are already found
	for i := range len(in.bytes) - x.head + 1 {
		lengths := x.heads[sum(sums, i, x.head)]
		for lengths != 0 {
			n := bits.Len32(lengths) - 1
			lengths &^= 1 << n
			if i+n > len(in.bytes) {
				continue
			}
			if _, isPart := x.parts[key(sums, i, n)]; isPart {
				at := span{max(in.at[i].from, until), in.at[i+n-1].to}
				until = max(until, at.to)
				found(at)
				break // a shorter part is within this part
			}
		}
	}
}

// hashPrefixes returns the hash of each prefix of a text.
func hashPrefixes(text []byte) []uint64 {
	out := make([]uint64, len(text)+1)
	for i, b := range text {
		out[i+1] = out[i]*factor + uint64(b) + 1
	}
	return out
}

// sum returns the hash of the n bytes of a text that begin at index i, where sums is the result of the function sums
// for this text.
func sum(sums []uint64, i, n int) uint64 { return sums[i+n] - sums[i]*powers[n] }

// key returns a hash of the n bytes of a text that begin at index i. Unlike the result of sum, it also depends on n. As
// in sum, sums is the result of the function sums for this text.
func key(sums []uint64, i, n int) uint64 { return sum(sums, i, n)*factor + uint64(n) }
