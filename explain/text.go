// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Width is the maximum number of characters of a line.
const Width = 80

// Style configures the text.
type Style struct {
	// Color is true if the text is for a terminal that displays colors.
	Color bool
}

// page builds a text that consists of entries with labels.
type page struct {
	b     strings.Builder
	style Style
	now   time.Time
}

// labelWidth is the width of the column with the labels.
const labelWidth = 15

// title writes a text that has no label.
func (p *page) title(text string) {
	for _, l := range wrap(text, Width) {
		p.b.WriteString(p.paint(bold, l) + "\n")
	}
}

// entry writes a text next to a label and wraps long lines.
func (p *page) entry(label, text string) { p.painted(label, text, "") }

func (p *page) painted(label, text, color string) {
	if text == "" {
		return
	}
	for i, l := range wrap(text, Width-labelWidth) {
		head := strings.Repeat(" ", labelWidth)
		if i == 0 && label != "" {
			head = p.paint(bold, fmt.Sprintf("%-*s", labelWidth, label))
		}
		p.b.WriteString(head + p.paint(color, l) + "\n")
	}
}

// list writes several entries below a single label.
func (p *page) list(label string, texts []string) {
	for i, text := range texts {
		if i > 0 {
			label = ""
		}
		p.entry(label, text)
	}
}

// These constants are ANSI escape codes for colors and styles.
const (
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
)

func (p *page) paint(color, text string) string {
	if !p.style.Color || color == "" || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// at formats a time, followed by how long ago it was or how soon it will be.
func (p *page) at(t *metav1.Time) string {
	if t == nil {
		return ""
	}
	return fmt.Sprintf("%s (%s)", t.UTC().Format("2006-01-02 15:04:05"), relative(t.Sub(p.now)))
}

// since formats the duration from the given time until now.
func (p *page) since(t *metav1.Time) string {
	if t == nil {
		return ""
	}
	return ", for " + short(p.now.Sub(t.Time))
}

// relative formats a duration relative to now.
func relative(d time.Duration) string {
	if d < 0 {
		return short(-d) + " ago"
	}
	return "in " + short(d)
}

// short formats a duration with at most two units.
func short(d time.Duration) string {
	d = max(d, 0).Round(time.Second)
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%dd", int(d.Hours())/24)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	case d >= time.Minute:
		return fmt.Sprintf("%dm%ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%ds", int(d.Seconds()))
}

// wrap breaks a text into lines at spaces. It also breaks words that are longer than a line.
func wrap(text string, width int) []string {
	var lines []string
	current := ""
	for word := range strings.FieldsSeq(text) {
		for utf8.RuneCountInString(word) > width {
			if current != "" {
				lines, current = append(lines, current), ""
			}
			head := string([]rune(word)[:width])
			lines, word = append(lines, head), word[len(head):]
		}
		switch {
		case current == "":
			current = word
		case utf8.RuneCountInString(current)+1+utf8.RuneCountInString(word) > width:
			lines, current = append(lines, current), word
		default:
			current += " " + word
		}
	}
	if current != "" {
		lines = append(lines, current)
	}
	return lines
}

// Text formats the explanation for users, in lines of at most [Width] characters.
func (e *Explanation) Text(style Style) string {
	p := &page{style: style, now: e.Time.Time}
	p.title(fmt.Sprintf("DeployItem %s/%s", e.Item.Namespace, e.Item.Name))
	p.entry("Type", e.Item.Type)
	p.painted("Phase", e.phaseText(p), phaseColor(e.Item.Phase))
	p.entry("Contract", e.Revision.Name+": "+e.Revision.Why)
	due := "no run is due. "
	if e.Decision.Due {
		due = "a run is due (" + e.Decision.Action + "). "
	}
	p.entry("Due", e.Decision.Reason+": "+due+e.Decision.Why)
	p.list("", e.Decision.Details)
	e.writeResponsible(p)
	for i, w := range e.Waits {
		p.entry(first(i, "Waiting for"), w.For+p.since(w.Since))
	}
	e.writeTimes(p)
	e.writeErrors(p)
	for i, h := range e.Hooks {
		p.entry(first(i, "Hooks"), fmt.Sprintf("%s: %s", h.Hook, h.Effect))
	}
	e.writeObjects(p)
	e.writeGraph(p)
	e.writeHistory(p)
	p.entry("Next", e.NextJob)
	for i, u := range e.Unknown {
		p.painted(first(i, "Unknown"), u.Part+": "+u.Why, yellow)
	}
	for i, a := range e.Advice {
		p.entry(first(i, "Advice"), a.Symptom+": "+a.Text)
	}
	return p.b.String()
}

// first returns `label` if i is 0, and "" otherwise. In a list, only the first entry has a label.
func first(i int, label string) string {
	if i == 0 {
		return label
	}
	return ""
}

func (e *Explanation) phaseText(p *page) string {
	text := e.Item.Phase
	if text == "" {
		text = "none yet"
	}
	if e.Item.Generation != e.Item.ObservedGeneration {
		text += fmt.Sprintf(", generation %d, observed %d", e.Item.Generation, e.Item.ObservedGeneration)
	}
	if e.Item.Deleted != nil {
		text += ", deleted " + relative(e.Item.Deleted.Sub(p.now))
	}
	return text
}

func phaseColor(phase string) string {
	switch phase {
	case "Succeeded":
		return green
	case "Failed", "DeleteFailed":
		return red
	}
	return yellow
}

func (e *Explanation) writeResponsible(p *page) {
	r := e.Responsible
	p.entry("Responsible", r.Summary)
	if r.Target != nil && r.Target.State != "found" {
		p.entry("", fmt.Sprintf("Target %s: %s.", r.Target.Name, r.Target.State))
	}
	for _, known := range r.Registrations {
		text := fmt.Sprintf("%s (%s): %s", known.Name, known.Source, known.Responsible)
		if known.Why != "" {
			text += ", " + known.Why
		}
		if known.Responsible != no && !known.Working {
			text += ", not active"
			if known.Renewed != nil {
				text += " since " + p.at(known.Renewed)
			}
		}
		p.entry("", "- "+text)
	}
	if r.Omitted > 0 {
		p.entry("", fmt.Sprintf("- %d more are not shown", r.Omitted))
	}
	if r.Deployer != nil {
		p.entry("", strings.TrimSpace(fmt.Sprintf("Last processed by %s %s", r.Deployer.Name, r.Deployer.Version))+".")
	}
}

func (e *Explanation) writeTimes(p *page) {
	for _, t := range []struct {
		label string
		at    *metav1.Time
	}{
		{"Started", e.Outcome.Started},
		{"Finished", e.Outcome.Finished},
		{"Deadline", e.Times.Deadline},
		{"Next reconcile", e.Times.NextReconcile},
		{"Continuous", e.Times.NextContinuousReconcile},
	} {
		p.entry(t.label, p.at(t.at))
	}
	p.list("Times", e.Times.Notes)
}

func (e *Explanation) writeErrors(p *page) {
	last, before := e.Outcome.LastError, e.Outcome.FirstError
	if before != nil && last != nil && before.Message != last.Message {
		p.painted("First error", before.text(), red)
	}
	if last != nil {
		p.painted("Last error", last.text(), red)
	}
}

// text returns an error as a single line.
func (e *Error) text() string {
	text := strings.Trim(e.Operation+" "+e.Reason, " ") + ": " + e.Message
	if len(e.Codes) > 0 {
		text += " (" + strings.Join(e.Codes, ", ") + ")"
	}
	return text
}

func (e *Explanation) writeObjects(p *page) {
	if e.Objects == nil {
		return
	}
	var counts []string
	for _, state := range slices.Sorted(maps.Keys(e.Objects.Counts)) {
		counts = append(counts, fmt.Sprintf("%d %s", e.Objects.Counts[state], state))
	}
	p.entry("Objects", strings.Join(counts, ", "))
	for _, o := range e.Objects.Listed {
		if rankOf(o.State) > 0 {
			continue
		}
		text := fmt.Sprintf("- %s %s: %s", o.Kind, strings.TrimPrefix(o.Namespace+"/"+o.Name, "/"), o.State)
		if o.Reason != "" {
			text += ", " + o.Reason
		}
		p.entry("", text)
	}
	if e.Objects.Omitted > 0 {
		p.entry("", fmt.Sprintf("- %d more", e.Objects.Omitted))
	}
	p.list("Drift", e.Objects.Drift)
}

func (e *Explanation) writeGraph(p *page) {
	if e.Graph == nil {
		return
	}
	for i, n := range e.Graph.Nodes {
		text := n.Name + ": " + n.State
		if n.Reason != "" {
			text += ", " + n.Reason
		}
		if len(n.BlockedBy) > 0 {
			text += ", waiting for " + strings.Join(n.BlockedBy, ", ")
		}
		p.entry(first(i, "Graph"), text)
	}
	if e.Graph.Omitted > 0 {
		p.entry("", fmt.Sprintf("%d more", e.Graph.Omitted))
	}
}

// shownHistory is the number of reconciles that the text contains.
const shownHistory = 5

func (e *Explanation) writeHistory(p *page) {
	last := e.History[max(0, len(e.History)-shownHistory):]
	for i, r := range slices.Backward(last) {
		calls := 0
		for _, c := range r.Calls {
			calls += c.Count
		}
		text := fmt.Sprintf("%s %s, %s, %d calls, by %s", relative(r.Began.Sub(p.now)), r.Result,
			(time.Duration(r.Micros) * time.Microsecond).Round(time.Millisecond), calls, r.Trigger)
		if r.Action != "" {
			text += ", " + r.Action
		}
		if len(r.Codes) > 0 {
			text += " (" + strings.Join(r.Codes, ", ") + ")"
		}
		p.entry(first(len(last)-1-i, "History"), line(text))
	}
}
