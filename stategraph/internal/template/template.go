// SPDX-License-Identifier: Apache-2.0

// Package template renders objects from files with Go templates. The functions of these templates always return the
// same, within bounds, and errors name file and line and show no values. It also finds which components a template
// uses.
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

// Template is a parsed template. It may be used by many goroutines.
type Template struct {
	// Uses are the components that the template uses by constant names.
	Uses []Use
	// Faults are named templates that are used but not defined.
	Faults []string
	// Optional means that the template may render no object, because all its text is within conditions.
	Optional bool

	parsed *texttemplate.Template
}

// Read reads a file of the directory Dir, and the named templates in the files beside it whose names begin with "_". It
// returns an error if a file is missing or cannot be parsed.
func Read(files fs.FS, name string) (*Template, error) {
	if files == nil {
		return nil, fmt.Errorf("template %s: there are no files (nil)", name)
	}
	file := path.Join(Dir, name)
	parsed := empty(file)
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
	return scanned(parsed), nil
}

// Parse parses a template that is not in a file.
func Parse(name, text string) (*Template, error) {
	parsed, err := empty(name).Parse(text)
	if err != nil {
		return nil, err
	}
	return scanned(parsed), nil
}

func empty(name string) *texttemplate.Template {
	return texttemplate.New(name).Option("missingkey=error").Funcs(Functions())
}

func scanned(parsed *texttemplate.Template) *Template {
	found := scan(parsed)
	return &Template{Uses: found.uses, Faults: found.faults, Optional: isOptional(parsed), parsed: parsed}
}

// Text renders the template. It returns an error if a value is missing, a function fails, the text exceeds MaxText
// bytes, or the context ends.
func (t *Template) Text(ctx context.Context, data any) (string, error) {
	out := &bounded{ctx: ctx}
	if err := t.parsed.Execute(out, data); err != nil {
		return "", withoutValue(err) // begins with "template: FILE:LINE:COLUMN:"
	}
	return out.text.String(), nil
}

// Objects renders the template and reads the YAML documents of the result. Empty ones are left out. It returns the
// errors of Text, and an error for a document that is no object.
func (t *Template) Objects(ctx context.Context, data any) ([]*unstructured.Unstructured, error) {
	text, err := t.Text(ctx, data)
	if err != nil {
		return nil, err
	}
	objs, err := documents(text)
	if err != nil {
		return nil, fmt.Errorf("template: %s: %w", t.parsed.Name(), err)
	}
	return objs, nil
}

// quotedValue matches where text/template quotes a value, which may be a secret of the configuration.
var quotedValue = regexp.MustCompile(`(?s)(range can't iterate over) .*$`)

// withoutValue returns an error that shows no values, but still matches the original one.
func withoutValue(err error) error {
	if text := quotedValue.ReplaceAllString(err.Error(), "$1 it"); text != err.Error() {
		return errors.New(text)
	}
	return err
}

// errTooLong ends a template that renders more than an item could hold.
var errTooLong = fmt.Errorf("the result is longer than %d bytes", MaxText)

// bounded is a buffer for at most MaxText bytes. It fails once the context has ended.
type bounded struct {
	ctx  context.Context //nolint:containedctx // text/template has no context; it lives as long as the call
	text bytes.Buffer
}

// Write adds to the buffer.
func (b *bounded) Write(p []byte) (int, error) {
	if b.text.Len()+len(p) > MaxText {
		return 0, errTooLong
	}
	if b.ctx.Err() != nil {
		return 0, context.Cause(b.ctx)
	}
	return b.text.Write(p)
}

// separator reports whether a line begins another document.
func separator(line string) bool {
	rest, found := strings.CutPrefix(line, "---")
	return found && (strings.TrimSpace(rest) == "" || strings.HasPrefix(strings.TrimSpace(rest), "#"))
}
