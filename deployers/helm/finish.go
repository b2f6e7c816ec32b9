// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"fmt"
	"strings"
)

// exportsDue reports whether exports must be stored that need the document of a rendering.
func (r *run) exportsDue(in inputs) bool {
	return r.needsDocument() && r.memory.exported != r.exportsKey(in)
}

// needsDocument reports whether there is an export of a value of the chart.
func (r *run) needsDocument() bool {
	for i := range r.config.Exports {
		if r.config.Exports[i].FromResource == nil {
			return true
		}
	}
	return false
}

// exportsKey identifies the exports of an item, together with the inputs.
func (r *run) exportsKey(in inputs) string {
	var text strings.Builder
	for i := range r.config.Exports {
		export := &r.config.Exports[i]
		_, _ = fmt.Fprintf(&text, "%q %q %v %v\n", export.Key, export.JSONPath, export.FromResource, export.FromObjectReference)
	}
	return fmt.Sprint(in, digest(r.Managed.Item.UID, []byte(text.String())))
}

// documentOf is the document of a rendering, until its values are exported.
type documentOf struct {
	inputs   inputs
	document map[string]any
}

// finish runs the steps after the objects were applied. The document is nil if nothing was applied.
func (r *run) finish(ctx context.Context, document map[string]any) error {
	if err := r.CheckAllReady(ctx); err != nil {
		return err
	}
	if document != nil || !r.needsDocument() {
		if err := r.SetExports(ctx, document); err != nil {
			return err
		}
	}
	if err := r.TryCleanUpFormer(ctx); err != nil {
		return err
	}
	if err := r.cleanUpReleases(ctx); err != nil {
		return err
	}
	if r.memory.document != nil {
		r.memory.exported = r.exportsKey(r.memory.document.inputs)
	}
	r.memory.rendered, r.memory.document = nil, nil
	r.newDriftDetector().report(ctx)
	r.Managed.Finish()
	return nil
}
