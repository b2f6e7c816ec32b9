// SPDX-License-Identifier: Apache-2.0

// Package protoscan estimates how much memory it takes to decode the metadata of an object or a Status from the
// Protobuf encoding of Kubernetes, before it is decoded. It refuses all other kinds, because a message of two bytes may
// take hundreds of bytes of memory, and only the kind determines which bytes are messages.
package protoscan

import (
	"bytes"
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/targets/internal/jsonscan"
)

// These constants are the maximum memory, in bytes, that decoding takes for each field of the metadata, such as a label
// or an owner reference; for each byte; and in addition for each byte of a Status.
const (
	costOfField      = 512
	costOfByte       = 16
	costOfStatusByte = 256
)

// prefix marks an encoded object.
var prefix = []byte("k8s\x00")

// ErrFormat is returned for everything except the metadata of an object and a Status.
var ErrFormat = errors.New("is not a valid encoding of the metadata of an object or of a Status")

// Scan is what is known about an encoded object before it is decoded.
type Scan struct {
	// Cost is the maximum memory that decoding takes, in bytes. It includes the memory for decoding fieldsV1, which is
	// JSON, from managedFields.
	Cost int64
	// Depth is the maximum nesting depth of fieldsV1.
	Depth int
}

// Event scans an encoded watch event and returns its type. The event is a message of type metav1.WatchEvent.
func Event(text []byte) (kind string, s Scan, err error) {
	s.Cost = int64(len(text)) * costOfByte
	err = each(text, func(field int, value []byte) error {
		switch field {
		case 1: // type
			kind = string(value)
		case 2: // object
			return each(value, func(_ int, raw []byte) error { return s.object(raw) })
		}
		return nil
	})
	return kind, s, err
}

// Object scans an encoded object. The object is a message of type runtime.Unknown after a prefix of four bytes.
func Object(text []byte) (Scan, error) {
	s := Scan{Cost: int64(len(text)) * costOfByte}
	err := s.object(text)
	return s, err
}

// object adds an encoded object, but not its bytes.
func (s *Scan) object(text []byte) error {
	text, found := bytes.CutPrefix(text, prefix)
	if !found {
		return ErrFormat
	}
	var gvk metav1.TypeMeta
	err := each(text, func(field int, value []byte) (err error) {
		switch field {
		case 1: // typeMeta
			gvk, err = typeOf(value, gvk)
		case 2: // raw
			err = s.metadata(value)
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case gvk == metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}:
		return nil
	case gvk == metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}:
		s.Cost += int64(len(text)) * costOfStatusByte
		return nil
	}
	return ErrFormat
}

// typeOf decodes a runtime.TypeMeta. Fields that the message does not contain keep their values in `before`.
func typeOf(message []byte, before metav1.TypeMeta) (metav1.TypeMeta, error) {
	err := each(message, func(field int, value []byte) error {
		switch field {
		case 1:
			before.APIVersion = string(value)
		case 2:
			before.Kind = string(value)
		}
		return nil
	})
	return before, err
}

// metadata adds the fields of the metadata of an object. Each element of a list or map is a field.
func (s *Scan) metadata(object []byte) error {
	return each(object, func(field int, value []byte) error {
		if field != 1 { // metadata
			return nil
		}
		return each(value, func(field int, value []byte) error {
			s.Cost += costOfField
			if field != 17 { // managedFields
				return nil
			}
			return each(value, s.managed)
		})
	})
}

// managed adds a field of an entry of managedFields.
func (s *Scan) managed(field int, value []byte) error {
	if field != 7 { // fieldsV1
		return nil
	}
	return each(value, func(_ int, text []byte) error {
		fields := jsonscan.All(text)
		s.Cost, s.Depth = s.Cost+fields.Cost(), max(s.Depth, fields.Depth)
		return nil
	})
}

// each calls f for each field of a message. The argument `value` is empty if the field is a number.
func each(message []byte, f func(field int, value []byte) error) error {
	for len(message) > 0 {
		field, kind, n := protowire.ConsumeTag(message)
		if n < 0 || kind == protowire.StartGroupType {
			return ErrFormat
		}
		message = message[n:]
		var value []byte
		if kind == protowire.BytesType {
			value, n = protowire.ConsumeBytes(message)
		} else {
			n = protowire.ConsumeFieldValue(field, kind, message)
		}
		if n < 0 {
			return ErrFormat
		}
		message = message[n:]
		if err := f(int(field), value); err != nil {
			return err
		}
	}
	return nil
}
