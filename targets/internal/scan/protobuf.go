// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// These constants are the maximum memory, in bytes, that decoding takes for each field of the metadata, such as a label
// or an owner reference; for each byte; and in addition for each byte of a Status.
const (
	fieldCost      = 512
	byteCost       = 16
	statusByteCost = 256
)

// prefix marks an encoded object.
var prefix = []byte("k8s\x00")

// errFormat is returned for everything except the metadata of an object and a Status. All other kinds are refused,
// because a message of two bytes may take hundreds of bytes of memory, and only the kind determines which bytes are
// messages.
var errFormat = errors.New("is not a valid encoding of the metadata of an object or of a Status")

// ScanProtobufEvent scans an event of a watch in the Protobuf encoding of Kubernetes. The event is a message of type
// metav1.WatchEvent. The cost includes decoding fieldsV1, which is ScanJSON, from managedFields.
func ScanProtobufEvent(text []byte) (Event, error) {
	e := Event{Bytes: int64(len(text)), Cost: Cost{Memory: int64(len(text)) * byteCost}}
	err := eachField(text, func(field int, value []byte) error {
		switch field {
		case 1: // type
			e.Type = string(value)
		case 2: // object
			return eachField(value, func(_ int, raw []byte) error { return e.addObject(raw) })
		}
		return nil
	})
	return e, err
}

// ScanProtobuf scans an object in the Protobuf encoding of Kubernetes. The object is a message of type runtime.Unknown
// after a prefix of four bytes.
func ScanProtobuf(text []byte) (Cost, error) {
	c := Cost{Memory: int64(len(text)) * byteCost}
	err := c.addObject(text)
	return c, err
}

// addObject adds the cost of an encoded object, but not of its bytes.
func (c *Cost) addObject(text []byte) error {
	text, found := bytes.CutPrefix(text, prefix)
	if !found {
		return errFormat
	}
	var gvk metav1.TypeMeta
	err := eachField(text, func(field int, value []byte) (err error) {
		switch field {
		case 1: // typeMeta
			gvk, err = parseTypeMeta(value, gvk)
		case 2: // raw
			err = c.addMetadata(value)
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case gvk == metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}:
		return nil
	case gvk == metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}:
		c.Memory += int64(len(text)) * statusByteCost
		return nil
	}
	return errFormat
}

// parseTypeMeta decodes a runtime.TypeMeta. Fields that the message does not contain keep their values in `before`.
func parseTypeMeta(message []byte, before metav1.TypeMeta) (metav1.TypeMeta, error) {
	err := eachField(message, func(field int, value []byte) error {
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

// addMetadata adds the cost of the fields in the metadata of an object. Each element of a list or map is a field.
func (c *Cost) addMetadata(object []byte) error {
	return eachField(object, func(field int, value []byte) error {
		if field != 1 { // metadata
			return nil
		}
		return eachField(value, func(field int, value []byte) error {
			c.Memory += fieldCost
			if field != 17 { // managedFields
				return nil
			}
			return eachField(value, c.addManagedFields)
		})
	})
}

// addManagedFields adds the cost of a field of an entry of managedFields.
func (c *Cost) addManagedFields(field int, value []byte) error {
	if field != 7 { // fieldsV1
		return nil
	}
	return eachField(value, func(_ int, text []byte) error {
		fields := ScanJSON(text)
		c.Memory, c.Depth = c.Memory+fields.Memory, max(c.Depth, fields.Depth)
		return nil
	})
}

// eachField calls f for each field of a message. If the field is a number, value is empty.
func eachField(message []byte, f func(field int, value []byte) error) error {
	for len(message) > 0 {
		field, kind, n := protowire.ConsumeTag(message)
		if n < 0 || kind == protowire.StartGroupType {
			return errFormat
		}
		message = message[n:]
		var value []byte
		if kind == protowire.BytesType {
			value, n = protowire.ConsumeBytes(message)
		} else {
			n = protowire.ConsumeFieldValue(field, kind, message)
		}
		if n < 0 {
			return errFormat
		}
		message = message[n:]
		if err := f(int(field), value); err != nil {
			return err
		}
	}
	return nil
}
