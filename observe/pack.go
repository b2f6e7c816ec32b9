// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
)

// maxDictionary bounds the dictionary of a packer in bytes, because pack compresses the dictionary together with each
// object.
const maxDictionary = 4 << 10

// packer compresses objects of one kind. Such objects resemble each other, so the first object is the dictionary for
// all objects. A ConfigMap then takes about a quarter of its size. The zero value is ready to use. A packer is safe for
// concurrent use.
type packer struct {
	once       sync.Once
	dictionary []byte
}

// writers and readers contain a *flate.Writer and a flate.Resetter for reuse, because they need much memory.
var (
	writers = sync.Pool{New: func() any {
		w, _ := flate.NewWriter(nil, flate.BestSpeed) // the level is valid
		return w
	}}
	readers = sync.Pool{New: func() any { return flate.NewReader(nil) }}
)

// pack compresses the JSON of an object.
func (p *packer) pack(raw []byte) string {
	p.once.Do(func() { p.dictionary = slices.Clone(raw[:min(len(raw), maxDictionary)]) })
	w := writers.Get().(*flate.Writer)
	defer writers.Put(w)
	out := &bytes.Buffer{} // a buffer never returns an error
	w.Reset(out)
	_, _ = w.Write(p.dictionary)
	_ = w.Flush()
	known := out.Len() // unpack has the dictionary
	_, _ = w.Write(raw)
	_ = w.Close()
	return string(out.Bytes()[known:])
}

// unpack returns the JSON from which pack made the content. It returns an error if the content was not made by this
// packer.
func (p *packer) unpack(content string) ([]byte, error) {
	r := readers.Get().(io.Reader)
	defer readers.Put(r)
	if err := r.(flate.Resetter).Reset(strings.NewReader(content), p.dictionary); err != nil {
		return nil, fmt.Errorf("unpack object: %w", err)
	}
	raw, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("unpack object: %w", err)
	}
	return raw, nil
}
