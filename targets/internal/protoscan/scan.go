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
)

// These constants are the maximum memory, in bytes, that decoding takes for each field of the metadata, such as a label
// or an owner reference; for each byte of the metadata; and for each byte of a Status.
const (
	costOfField      = 512
	costOfByte       = 8
	costOfStatusByte = 256
)

// prefix marks an encoded object.
var prefix = []byte("k8s\x00")

// ErrFormat is returned for everything except the metadata of an object and a Status.
var ErrFormat = errors.New("is neither the metadata of an object nor a Status")

// Event returns the type of an encoded watch event, and the maximum memory that decoding takes, in bytes. The event is
// a message of type metav1.WatchEvent.
func Event(text []byte) (kind string, cost int64, err error) {
	err = each(text, func(field int, value []byte) error {
		switch field {
		case 1: // type
			kind = string(value)
		case 2: // object
			return each(value, func(_ int, raw []byte) error {
				c, err := Object(raw)
				cost += c
				return err
			})
		}
		return nil
	})
	return kind, cost + int64(len(text))*costOfByte, err
}

// Object returns the maximum memory that decoding an encoded object takes, in bytes. The object is a message of type
// runtime.Unknown after a prefix of four bytes.
func Object(text []byte) (cost int64, err error) {
	text, found := bytes.CutPrefix(text, prefix)
	if !found {
		return 0, ErrFormat
	}
	var gvk metav1.TypeMeta
	var fields int64
	err = each(text, func(field int, value []byte) (err error) {
		switch field {
		case 1: // typeMeta
			gvk, err = typeOf(value, gvk)
		case 2: // raw
			var n int64
			n, err = metadataFields(value)
			fields += n
		}
		return err
	})
	switch {
	case err != nil:
		return 0, err
	case gvk == metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}:
		return fields*costOfField + int64(len(text))*costOfByte, nil
	case gvk == metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}:
		return int64(len(text)) * costOfStatusByte, nil
	}
	return 0, ErrFormat
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

// metadataFields returns the number of fields in the metadata of an object. Each element of a list or map is a field.
func metadataFields(object []byte) (n int64, err error) {
	err = each(object, func(field int, value []byte) error {
		if field != 1 { // metadata
			return nil
		}
		return each(value, func(int, []byte) error { n++; return nil })
	})
	return n, err
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
