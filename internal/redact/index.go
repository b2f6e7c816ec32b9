// SPDX-License-Identifier: Apache-2.0

package redact

import "math/bits"

const (
	// part is the length of the parts by which longer values are found.
	part = 16
	// large is the length from which only the parts at every stride of a value are indexed.
	large  = 16 << 10
	stride = 8
	// factor is the base of the rolling hash.
	factor = 0x9e3779b97f4a7c15
)

// powers are the powers of factor.
var powers = func() (out [part + 1]uint64) {
	out[0] = 1
	for i := range part {
		out[i+1] = out[i] * factor
	}
	return out
}()

// index finds parts of values by their hashes. A collision hides more, never less.
type index struct {
	head  int                 // length of the shortest value
	heads map[uint64]uint32   // hashes of the beginnings of values, with a bit for each length
	parts map[uint64]struct{} // hashes of values shorter than part, and of all parts of longer ones
}

func newIndex(shortest int) index {
	return index{head: shortest, heads: map[uint64]uint32{}, parts: map[uint64]struct{}{}}
}

func (x *index) isEmpty() bool { return len(x.parts) == 0 }

func (x *index) size() int { return len(x.parts) }

// add adds a value of at least head bytes.
func (x *index) add(value []byte) {
	sums := sums(value)
	n, step := min(len(value), part), 1
	if len(value) > large {
		step = stride
	}
	last := len(value) - n
	for i := 0; i < last; i += step {
		x.note(sums, i, n)
	}
	x.note(sums, last, n)
}

func (x *index) note(sums []uint64, i, n int) {
	x.heads[sum(sums, i, x.head)] |= 1 << n
	x.parts[key(sums, i, n)] = struct{}{}
}

// find calls found for each part of the stream that belongs to a value.
func (x *index) find(in stream, found func(span)) {
	if x.isEmpty() {
		return
	}
	sums := sums(in.bytes)
	until := int32(0) // everything before this is already found
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
				break // a shorter one is within this one
			}
		}
	}
}

// sums returns the hashes of all prefixes of a text.
func sums(text []byte) []uint64 {
	out := make([]uint64, len(text)+1)
	for i, b := range text {
		out[i+1] = out[i]*factor + uint64(b) + 1
	}
	return out
}

// sum returns the hash of the n bytes at i.
func sum(sums []uint64, i, n int) uint64 { return sums[i+n] - sums[i]*powers[n] }

// key returns a hash of the n bytes at i that includes the length.
func key(sums []uint64, i, n int) uint64 { return sum(sums, i, n)*factor + uint64(n) }
