// SPDX-License-Identifier: Apache-2.0

// Package scan estimates how much memory it takes to decode a response of an API server or an event of a watch, before
// it is decoded.
package scan

// Cost is an estimate of what it takes to decode a text.
type Cost struct {
	// Memory is the maximum memory that decoding takes, in bytes.
	Memory int64
	// Depth is the maximum nesting depth of ScanJSON values.
	Depth int
}

// Event describes an event of a watch that has not been decoded.
type Event struct {
	// Type is the type of the event, or EventInvalid.
	Type string
	// Bytes is the size of the event.
	Bytes int64
	Cost
}

// EventInvalid is the type of an event that cannot be decoded.
const EventInvalid = "?"
