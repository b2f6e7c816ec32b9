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

// MaxLineWidth is the maximum number of characters of a line.
const MaxLineWidth = 80

// Style configures the text.
type Style struct {
	// Color is true if the text is for a terminal that displays colors.
	Color bool
}

// limitItems builds a text that consists of entries with labels.
type limitItems struct {
	b     strings.Builder
	style Style
	now   time.Time
}

// labelWidth is the width of the column with the labels.
const labelWidth = 15

// writeTitle writes a text that has no label.
func (p *limitItems) writeTitle(text string) {
	for _, l := range wrap(text, MaxLineWidth) {
		p.b.WriteString(p.addColor(bold, l) + "\n")
	}
}

// writeEntry writes a text next to a label and wraps long lines.
func (p *limitItems) writeEntry(label, text string) { p.writeColored(label, text, "") }

func (p *limitItems) writeColored(label, text, color string) {
	if text == "" {
		return
	}
	for i, l := range wrap(text, MaxLineWidth-labelWidth) {
		head := strings.Repeat(" ", labelWidth)
		if i == 0 && label != "" {
			head = p.addColor(bold, fmt.Sprintf("%-*s", labelWidth, label))
		}
		p.b.WriteString(head + p.addColor(color, l) + "\n")
	}
}

// writeList writes several entries below a single label.
func (p *limitItems) writeList(label string, texts []string) {
	for i, text := range texts {
		if i > 0 {
			label = ""
		}
		p.writeEntry(label, text)
	}
}

// These constants are ANSI escape codes for colors and styles.
const (
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
)

func (p *limitItems) addColor(color, text string) string {
	if !p.style.Color || color == "" || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// formatTime formats a time, followed by how long ago it was or how soon it will be.
func (p *limitItems) formatTime(t *metav1.Time) string {
	if t == nil {
		return ""
	}
	return fmt.Sprintf("%s (%s)", t.UTC().Format("2006-01-02 15:04:05"), formatRelative(t.Sub(p.now)))
}

// formatSince formats the duration from the given time until now.
func (p *limitItems) formatSince(t *metav1.Time) string {
	if t == nil {
		return ""
	}
	return ", for " + formatDuration(p.now.Sub(t.Time))
}

// formatRelative formats a duration relative to now.
func formatRelative(d time.Duration) string {
	if d < 0 {
		return formatDuration(-d) + " ago"
	}
	return "in " + formatDuration(d)
}

// formatDuration formats a duration with at most two units.
func formatDuration(d time.Duration) string {
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

// Format formats the explanation for users, in lines of at most [MaxLineWidth] characters.
func (e *Explanation) Format(style Style) string {
	p := &limitItems{style: style, now: e.Time.Time}
	p.writeTitle(fmt.Sprintf("DeployItem %s/%s", e.Item.Namespace, e.Item.Name))
	p.writeEntry("Type", e.Item.Type)
	p.writeColored("Phase", e.formatPhase(p), getPhaseColor(e.Item.Phase))
	p.writeEntry("Contract", e.Revision.Name+": "+e.Revision.Why)
	due := "no run is due. "
	if e.Decision.Due {
		due = "a run is due (" + e.Decision.Action + "). "
	}
	p.writeEntry("Due", e.Decision.Reason+": "+due+e.Decision.Why)
	p.writeList("", e.Decision.Details)
	e.writeResponsible(p)
	for i, w := range e.Waits {
		p.writeEntry(labelIfFirst(i, "Waiting for"), w.For+p.formatSince(w.Since))
	}
	e.writeTimes(p)
	e.writeErrors(p)
	for i, h := range e.Hooks {
		p.writeEntry(labelIfFirst(i, "Hooks"), fmt.Sprintf("%s: %s", h.Hook, h.Effect))
	}
	e.writeRelease(p)
	e.writeObjects(p)
	e.writeGraph(p)
	e.writeHistory(p)
	p.writeEntry("Next", e.NextJob)
	for i, u := range e.Unknown {
		p.writeColored(labelIfFirst(i, "Unknown"), u.Part+": "+u.Why, yellow)
	}
	for i, a := range e.Advice {
		p.writeEntry(labelIfFirst(i, "Advice"), a.Symptom+": "+a.Text)
	}
	return p.b.String()
}

// labelIfFirst returns `label` if i is 0, and "" otherwise. In a list, only the first entry has a label.
func labelIfFirst(i int, label string) string {
	if i == 0 {
		return label
	}
	return ""
}

func (e *Explanation) formatPhase(p *limitItems) string {
	text := e.Item.Phase
	if text == "" {
		text = "none yet"
	}
	if e.Item.Generation != e.Item.ObservedGeneration {
		text += fmt.Sprintf(", generation %d, observed %d", e.Item.Generation, e.Item.ObservedGeneration)
	}
	if e.Item.Deleted != nil {
		text += ", deleted " + formatRelative(e.Item.Deleted.Sub(p.now))
	}
	return text
}

func getPhaseColor(phase string) string {
	switch phase {
	case "Succeeded":
		return green
	case "Failed", "DeleteFailed":
		return red
	}
	return yellow
}

func (e *Explanation) writeResponsible(p *limitItems) {
	r := e.Responsible
	p.writeEntry("Responsible", r.Summary)
	if r.Target != nil && r.Target.State != "found" {
		p.writeEntry("", fmt.Sprintf("Target %s: %s.", r.Target.Name, r.Target.State))
	}
	for _, known := range r.Registrations {
		text := fmt.Sprintf("%s (%s): %s", known.Name, known.Source, known.Responsible)
		if known.Why != "" {
			text += ", " + known.Why
		}
		if known.Responsible != responsibleNo && !known.Working {
			text += ", not active"
			if known.Renewed != nil {
				text += " since " + p.formatTime(known.Renewed)
			}
		}
		p.writeEntry("", "- "+text)
	}
	if r.Omitted > 0 {
		p.writeEntry("", fmt.Sprintf("- %d more are not shown", r.Omitted))
	}
	if r.Deployer != nil {
		p.writeEntry("", strings.TrimSpace(fmt.Sprintf("Last processed by %s %s", r.Deployer.Name, r.Deployer.Version))+".")
	}
}

func (e *Explanation) writeTimes(p *limitItems) {
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
		p.writeEntry(t.label, p.formatTime(t.at))
	}
	p.writeList("Times", e.Times.Notes)
}

func (e *Explanation) writeErrors(p *limitItems) {
	last, before := e.Outcome.LastError, e.Outcome.FirstError
	if before != nil && last != nil && before.Message != last.Message {
		p.writeColored("First error", before.format(), red)
	}
	if last != nil {
		p.writeColored("Last error", last.format(), red)
	}
}

// format returns an error as a single line.
func (e *Error) format() string {
	text := strings.Trim(e.Operation+" "+e.Reason, " ") + ": " + e.Message
	if len(e.Codes) > 0 {
		text += " (" + strings.Join(e.Codes, ", ") + ")"
	}
	return text
}

func (e *Explanation) writeRelease(p *limitItems) {
	if e.Release == nil {
		return
	}
	text := e.Release.Namespace + "/" + e.Release.Name
	if details := e.Release.String(); details != "" {
		text += ": " + details
	}
	p.writeEntry("Release", text)
	if e.Release.Failure != "" {
		p.writeEntry("", "- the last operation failed: "+e.Release.Failure)
	}
}

func (e *Explanation) writeObjects(p *limitItems) {
	if e.Objects == nil {
		return
	}
	var counts []string
	for _, state := range slices.Sorted(maps.Keys(e.Objects.Counts)) {
		counts = append(counts, fmt.Sprintf("%d %s", e.Objects.Counts[state], state))
	}
	p.writeEntry("Objects", strings.Join(counts, ", "))
	for _, o := range e.Objects.Listed {
		if getStateRank(o.State) > 0 {
			continue
		}
		text := fmt.Sprintf("- %s %s: %s", o.Kind, strings.TrimPrefix(o.Namespace+"/"+o.Name, "/"), o.State)
		if o.Reason != "" {
			text += ", " + o.Reason
		}
		p.writeEntry("", text)
	}
	if e.Objects.Omitted > 0 {
		p.writeEntry("", fmt.Sprintf("- %d more", e.Objects.Omitted))
	}
	p.writeList("Drift", e.Objects.Drift)
}

func (e *Explanation) writeGraph(p *limitItems) {
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
		p.writeEntry(labelIfFirst(i, "Graph"), text)
	}
	if e.Graph.Omitted > 0 {
		p.writeEntry("", fmt.Sprintf("%d more", e.Graph.Omitted))
	}
}

// shownHistory is the number of reconciles that the text contains.
const shownHistory = 5

func (e *Explanation) writeHistory(p *limitItems) {
	last := e.History[max(0, len(e.History)-shownHistory):]
	for i, r := range slices.Backward(last) {
		calls := 0
		for _, c := range r.Calls {
			calls += c.Count
		}
		text := fmt.Sprintf("%s %s, %s, %d calls, by %s", formatRelative(r.Began.Sub(p.now)), r.Result,
			(time.Duration(r.Micros) * time.Microsecond).Round(time.Millisecond), calls, r.Trigger)
		if r.Action != "" {
			text += ", " + r.Action
		}
		if len(r.Codes) > 0 {
			text += " (" + strings.Join(r.Codes, ", ") + ")"
		}
		p.writeEntry(labelIfFirst(len(last)-1-i, "History"), shortenText(text))
	}
}
