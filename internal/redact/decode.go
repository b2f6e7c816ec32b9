// SPDX-License-Identifier: Apache-2.0

package redact

// decoders contains functions that decode base64 and other encodings in which a text may contain a value. Each function
// decodes the whole stream. The position at which an encoded value begins is not known, so there is one function for
// each possible offset.
var decoders = []func(stream) stream{
	func(in stream) stream { return decodeBase64(in, 0) },
	func(in stream) stream { return decodeBase64(in, 1) },
	func(in stream) stream { return decodeBase64(in, 2) },
	func(in stream) stream { return decodeBase64(in, 3) },
	func(in stream) stream { return decodeHex(in, 0) },
	func(in stream) stream { return decodeHex(in, 1) },
	decodeDecimals,
}

// decodeBase64 decodes each sequence of base64 letters (of both alphabets), but skips the first `skip` letters of the
// sequence. Within a sequence, it ignores white space, quotes and backslashes.
func decodeBase64(in stream, skip int) stream {
	out := stream{bytes: make([]byte, 0, len(in.bytes)), at: make([]span, 0, len(in.bytes))}
	var bits uint32
	last, n := span{}, -skip // number of letters in the sequence so far
	for i, c := range in.bytes {
		value := base64Values[c]
		switch {
		case value >= 0:
			if n++; n <= 0 {
				continue
			}
			bits = bits<<6 | uint32(value)
			// Each letter except the first of four completes a byte.
			if have := (n - 1) % 4; have > 0 {
				out.add(byte(bits>>(6-2*have)), span{last.from, in.at[i].to}) //nolint:gosec // the lower eight bits are meant
			}
			last = in.at[i]
		case c > ' ' && !isQuote(c):
			n = -skip
			if end := len(out.at) - 1; c == '=' && end >= 0 && out.at[end].to == in.at[i].from {
				out.at[end].to = in.at[i].to
			}
		}
	}
	return out
}

// base64Values maps the letters of both alphabets to their values, and all other bytes to -1.
var base64Values = func() (out [256]int8) {
	for i := range out {
		out[i] = -1
	}
	for _, alphabet := range []string{"+/", "-_"} {
		for i, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789" + alphabet) {
			out[c] = int8(i) //nolint:gosec // less than 64
		}
	}
	return out
}()

// decodeHex decodes each sequence of hexadecimal digits, but skips the first `skip` digits of the sequence. Two digits
// are one byte.
func decodeHex(in stream, skip int) stream {
	out := stream{}
	for i := 0; i < len(in.bytes); i++ {
		end := i
		for end < len(in.bytes) && parseHexDigit(in.bytes[end]) >= 0 {
			end++
		}
		if end-i > 2 {
			i += skip
		}
		for ; i+1 < end; i += 2 {
			value := parseHexDigit(in.bytes[i])<<4 | parseHexDigit(in.bytes[i+1])
			out.add(byte(value), in.getSpan(i, i+2)) //nolint:gosec // two digits
		}
		i = end
	}
	return out
}

func parseHexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// decodeDecimals decodes lists of bytes as Go prints them: [112 97 115 115].
func decodeDecimals(in stream) stream {
	out := stream{}
	for i := 0; i < len(in.bytes); {
		value, from := 0, i
		for i < len(in.bytes) && in.bytes[i] >= '0' && in.bytes[i] <= '9' {
			value = min(value*10+int(in.bytes[i]-'0'), 256)
			i++
		}
		if i == from {
			i++
		} else if value < 256 {
			out.add(byte(value), in.getSpan(from, i)) //nolint:gosec // less than 256
		}
	}
	return out
}
