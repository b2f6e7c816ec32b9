// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// newConfigMapJSON returns the JSON of an object that resembles the others in everything but its names.
func newConfigMapJSON(i int) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","data":{"value":"same"},"kind":"ConfigMap","metadata":{"labels":{"app":"web"},"name":"settings-%d","namespace":"shop"}}`, i)
}

func TestPack(t *testing.T) {
	t.Log("[F26] the objects that a watch stores for handlers are complete")
	for name, objects := range map[string][][]byte{
		"alike":      {newConfigMapJSON(1), newConfigMapJSON(2), newConfigMapJSON(3)},
		"empty":      {[]byte("{}"), newConfigMapJSON(1)},
		"large":      {[]byte(strings.Repeat("first ", maxDictionary)), []byte(strings.Repeat("second ", 100_000)), newConfigMapJSON(1)},
		"unlike":     {newConfigMapJSON(1), []byte(`{"kind":"Pod"}`)},
		"of no size": {newConfigMapJSON(1), nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := &packer{}
			for _, want := range objects {
				if got, err := p.unpack(p.pack(want)); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%.80q, %v, want %.80q", got, err, want)
				}
			}
		})
	}
}

func TestPackIsSmall(t *testing.T) {
	p := &packer{}
	p.pack(newConfigMapJSON(1))
	if raw, packed := newConfigMapJSON(12345), p.pack(newConfigMapJSON(12345)); len(packed) > len(raw)/4 {
		t.Errorf("%d bytes become %d", len(raw), len(packed))
	}
}

func TestUnpackForeignContent(t *testing.T) {
	if got, err := (&packer{}).unpack("not packed"); err == nil {
		t.Errorf("no error, but %q", got)
	}
}

func TestPackConcurrently(t *testing.T) {
	p := &packer{}
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			if got, err := p.unpack(p.pack(newConfigMapJSON(i))); err != nil || !bytes.Equal(got, newConfigMapJSON(i)) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	all.Wait()
}

func BenchmarkPack(b *testing.B) {
	p, raw := &packer{}, newConfigMapJSON(1)
	b.ReportAllocs()
	for b.Loop() {
		p.pack(raw)
	}
}

func BenchmarkUnpack(b *testing.B) {
	p := &packer{}
	content := p.pack(newConfigMapJSON(1))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = p.unpack(content)
	}
}
