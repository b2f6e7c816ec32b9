// SPDX-License-Identifier: Apache-2.0

// Package template renders objects from files with Go templates. The functions in these templates are deterministic,
// and the size of their results is limited. Errors contain the file and the line, but no values. The package also finds
// the components that a template uses.
package template

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	texttemplate "text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Dir is the directory of the templates.
const Dir = "templates"

// Template is a parsed template. It is safe for concurrent use.
type Template struct {
	// Uses lists the places where the template uses a component whose name is a constant.
	Uses []Use
	// Faults contains a text for each call of a named template that no file defines.
	Faults []string
	// Optional is true if the whole text of the template is inside conditions, so that the template may render no object.
	Optional bool

	parsed *texttemplate.Template
}

// Read parses the given file in the directory Dir. It also parses all files in Dir whose names begin with "_", because
// they may define named templates. It returns an error if a file is missing or cannot be parsed.
func Read(files fs.FS, name string) (*Template, error) {
	if files == nil {
		return nil, fmt.Errorf("template %s: the file system is nil", name)
	}
	file := path.Join(Dir, name)
	parsed := newTemplate(file)
	partials, err := fs.Glob(files, Dir+"/_*")
	if err != nil {
		return nil, fmt.Errorf("template %s: %w", file, err)
	}
	for _, partial := range append(partials, file) {
		text, err := fs.ReadFile(files, partial)
		if err != nil {
			return nil, fmt.Errorf("template %s: %w", partial, err)
		}
		at := parsed
		if partial != file {
			at = parsed.New(partial)
		}
		if _, err := at.Parse(string(text)); err != nil {
			return nil, err // begins with "template: FILE:LINE:"
		}
	}
	return scanTemplate(parsed), nil
}

// Parse parses a template that is not in a file.
func Parse(name, text string) (*Template, error) {
	parsed, err := newTemplate(name).Parse(text)
	if err != nil {
		return nil, err
	}
	return scanTemplate(parsed), nil
}

func newTemplate(name string) *texttemplate.Template {
	return texttemplate.New(name).Option("missingkey=error").Funcs(NewFuncMap())
}

func scanTemplate(parsed *texttemplate.Template) *Template {
	found := scan(parsed)
	return &Template{Uses: found.uses, Faults: found.faults, Optional: isOptional(parsed), parsed: parsed}
}

// Render renders the template. It returns an error if a value is missing, a function fails, the text exceeds MaxText
// bytes, or the context ends.
func (t *Template) Render(ctx context.Context, data any) (string, error) {
	out := &limitedBuffer{ctx: ctx}
	if err := t.parsed.Execute(out, data); err != nil {
		return "", withoutValue(err) // begins with "template: FILE:LINE:COLUMN:"
	}
	return out.text.String(), nil
}

// RenderObjects renders the template and decodes the YAML documents of the result. It ignores empty documents. It
// returns an error in the same cases as Text, and also if a document is not an object.
func (t *Template) RenderObjects(ctx context.Context, data any) ([]*unstructured.Unstructured, error) {
	text, err := t.Render(ctx, data)
	if err != nil {
		return nil, err
	}
	objs, err := decodeDocuments(text)
	if err != nil {
		return nil, fmt.Errorf("template: %s: %w", t.parsed.Name(), err)
	}
	return objs, nil
}

// quotedValue matches the part of a text/template error that quotes a value. The value may be a secret from the
// configuration.
var quotedValue = regexp.MustCompile(`(?s)(range can't iterate over) .*$`)

// withoutValue removes a quoted value from an error. If there is no such value, it returns err.
func withoutValue(err error) error {
	if text := quotedValue.ReplaceAllString(err.Error(), "$1 it"); text != err.Error() {
		return errors.New(text)
	}
	return err
}

// errTooLong is returned if the result of a template is too long.
var errTooLong = fmt.Errorf("the result is longer than %d bytes", MaxText)

// limitedBuffer is a buffer for at most MaxText bytes. After its context has ended, Write returns an error.
type limitedBuffer struct {
	ctx  context.Context //nolint:containedctx // text/template has no context; it lives as long as the call
	text bytes.Buffer
}

// Write adds to the buffer.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.text.Len()+len(p) > MaxText {
		return 0, errTooLong
	}
	if b.ctx.Err() != nil {
		return 0, context.Cause(b.ctx)
	}
	return b.text.Write(p)
}

// isSeparator reports whether a line separates two YAML documents.
func isSeparator(line string) bool {
	rest, found := strings.CutPrefix(line, "---")
	return found && (strings.TrimSpace(rest) == "" || strings.HasPrefix(strings.TrimSpace(rest), "#"))
}
