// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/Masterminds/semver/v3"
	"sigs.k8s.io/yaml"
)

// maxIndexEntry is the maximum size of the part of an index that describes one version of a chart.
const maxIndexEntry = 1 << 20

var errIndex = newError("", "the file index.yaml is not the index of a chart repository")

// indexEntry describes a version of a chart in the index of a repository.
type indexEntry struct {
	Name    string   `json:"name"`
	Version string   `json:"version"`
	Digest  string   `json:"digest"`
	URLs    []string `json:"urls"`
}

// selection selects the version of a chart: the one that is equal to a text, or else the highest in a range.
type selection struct {
	name, want string
	allowed    *semver.Constraints
	best       *indexEntry
	version    *semver.Version
	exact      bool
}

// newSelection returns a selection for a version or a range.
func newSelection(name, want string) (*selection, error) {
	allowed, err := semver.NewConstraint(want)
	if err != nil {
		return nil, errors.New("must be a version such as 1.0.0 or a range such as ^1.0.0")
	}
	return &selection{name: name, want: want, allowed: allowed}, nil
}

// add considers a version.
func (s *selection) add(e indexEntry) {
	if s.exact || e.Name != "" && e.Name != s.name {
		return
	}
	if e.Version == s.want {
		s.best, s.exact = &e, true
		return
	}
	version, err := semver.NewVersion(e.Version)
	if err != nil || !s.allowed.Check(version) || s.version != nil && !version.GreaterThan(s.version) {
		return
	}
	s.best, s.version = &e, version
}

// scan reads an index and considers all versions of the chart. It keeps only one of them in memory.
func (s *selection) scan(index io.Reader) error {
	in := bufio.NewReaderSize(index, 64<<10)
	for {
		b, err := in.ReadByte()
		if err != nil {
			return notIndex(err)
		}
		if strings.IndexByte(" \t\r\n", b) >= 0 {
			continue
		}
		if err := in.UnreadByte(); err != nil {
			return err
		}
		if b == '{' {
			return s.scanJSON(json.NewDecoder(in))
		}
		scanner := indexScanner{selection: s, keys: -1}
		return scanner.scan(in)
	}
}

// notIndex returns errIndex at the end of a file.
func notIndex(err error) error {
	if errors.Is(err, io.EOF) {
		return errIndex
	}
	return err
}

// scanJSON reads an index in JSON format.
func (s *selection) scanJSON(in *json.Decoder) error {
	return eachField(in, func(field string) error {
		if field != "entries" {
			return skip(in)
		}
		return eachField(in, func(name string) error {
			if name != s.name {
				return skip(in)
			}
			return s.scanVersions(in)
		})
	})
}

// scanVersions reads the versions of the chart in JSON format.
func (s *selection) scanVersions(in *json.Decoder) error {
	if token, err := in.Token(); err != nil || token != json.Delim('[') {
		return jsonError(err)
	}
	for in.More() {
		var e indexEntry
		if err := in.Decode(&e); err != nil {
			return jsonError(err)
		}
		s.add(e)
	}
	return end(in)
}

// eachField calls a function for each field of an object. The function must read the value of the field.
func eachField(in *json.Decoder, read func(field string) error) error {
	if token, err := in.Token(); err != nil || token != json.Delim('{') {
		return jsonError(err)
	}
	for in.More() {
		token, err := in.Token()
		if err != nil {
			return jsonError(err)
		}
		field, _ := token.(string)
		if err := read(field); err != nil {
			return err
		}
	}
	return end(in)
}

// end reads the end of an object or a list.
func end(in *json.Decoder) error {
	if _, err := in.Token(); err != nil {
		return jsonError(err)
	}
	return nil
}

// skip reads a value and ignores it, without keeping it in memory.
func skip(in *json.Decoder) error {
	for depth := 0; ; {
		token, err := in.Token()
		if err != nil {
			return jsonError(err)
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// jsonError returns an error without parts of the index.
func jsonError(err error) error {
	if _, ok := errors.AsType[*json.SyntaxError](err); ok || err == nil {
		return errIndex
	}
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return errIndex
	}
	return err
}

// indexScanner finds the versions of a chart in an index in YAML format by the indentation of its lines, and decodes
// one version at a time. In block style, the lines between two keys with the same indentation belong to the first key.
type indexScanner struct {
	*selection

	entries bool // inside of the field entries
	inside  bool // inside of the chart
	keys    int  // indentation of the names of charts, or -1
	items   int  // indentation of the versions of the chart, or -1
	item    bytes.Buffer
}

// scan reads the index.
func (s *indexScanner) scan(in *bufio.Reader) error {
	for {
		line, err := readLine(in)
		if errors.Is(err, io.EOF) {
			return s.finish()
		}
		if err == nil {
			err = s.line(line)
		}
		if err != nil {
			return err
		}
	}
}

// finish decodes the last version.
func (s *indexScanner) finish() error {
	if err := s.flush(); err != nil {
		return err
	}
	if !s.entries {
		return errIndex
	}
	return nil
}

// line handles a line.
func (s *indexScanner) line(line []byte) error {
	text := bytes.TrimLeft(line, " ")
	indent := len(line) - len(text)
	blank := len(bytes.TrimSpace(text)) == 0
	switch {
	case !blank && indent == 0 && text[0] != '#' && !bytes.HasPrefix(text, []byte("- ")):
		return s.topLevel(text)
	case !s.entries || s.keys == -2:
		return nil
	case s.isKey(text, indent, blank):
		s.keys = indent
		return s.key(text)
	case s.inside:
		return s.content(line, text, indent, blank)
	}
	return nil
}

// isKey reports whether a line contains the name of a chart.
func (s *indexScanner) isKey(text []byte, indent int, blank bool) bool {
	return !blank && text[0] != '-' && text[0] != '#' && (s.keys < 0 || indent == s.keys)
}

// topLevel handles a line without indentation.
func (s *indexScanner) topLevel(text []byte) error {
	if err := s.flush(); err != nil {
		return err
	}
	s.inside = false
	name, rest, found := cutKey(text)
	switch {
	case !found || name != "entries":
		if s.entries {
			s.keys = -2 // the field entries has ended
		}
	case rest == "" || rest == "{}":
		s.entries = true
	default:
		return errIndex
	}
	return nil
}

// key handles the name of a chart.
func (s *indexScanner) key(text []byte) error {
	if err := s.flush(); err != nil {
		return err
	}
	name, rest, found := cutKey(text)
	s.inside, s.items = found && name == s.name && rest == "", -1
	return nil
}

// content handles a line of the chart.
func (s *indexScanner) content(line, text []byte, indent int, blank bool) error {
	if !blank && text[0] == '-' && (s.items < 0 || indent == s.items) {
		if err := s.flush(); err != nil {
			return err
		}
		s.items = indent
	}
	if s.item.Write(line); s.item.Len() > maxIndexEntry {
		return newError("", "the file index.yaml describes a version of the chart in more than %d bytes", maxIndexEntry)
	}
	return nil
}

// flush decodes the version whose lines have been read.
func (s *indexScanner) flush() error {
	defer s.item.Reset()
	if len(bytes.TrimSpace(s.item.Bytes())) == 0 {
		return nil
	}
	var entries []indexEntry
	if yaml.Unmarshal(s.item.Bytes(), &entries) != nil {
		return errIndex
	}
	for _, entry := range entries {
		s.add(entry)
	}
	return nil
}

// readLine reads a line with its end.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxIndexEntry:
			return nil, newError("", "the file index.yaml contains a line with more than %d bytes", maxIndexEntry)
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		default:
			return line, err
		}
	}
}

// cutKey splits a line with a key of a map. The rest does not contain comments.
func cutKey(text []byte) (key, rest string, found bool) {
	line := strings.TrimSpace(string(text))
	key, rest, found = strings.Cut(line+" ", ": ")
	if !found {
		return "", "", false
	}
	if key = strings.TrimSpace(key); len(key) >= 2 && (key[0] == '"' || key[0] == '\'') && key[len(key)-1] == key[0] {
		key = key[1 : len(key)-1]
	}
	rest, _, _ = strings.Cut(" "+rest, " #")
	return key, strings.TrimSpace(rest), true
}
