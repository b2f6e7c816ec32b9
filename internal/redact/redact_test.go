// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/deployerkit/deployerkit/internal/testtime"
)

// findLeak returns a part of the value that the text `shown` still contains, or "" if there is none. It does not use
// the tested code: it searches for six consecutive letters and digits of the value, and ignores those that `quote` adds
// to every value.
func findLeak(shown, value string, quote func(string) string) string {
	const enough = 6
	added := strings.Map(alphanumeric, quote(strings.Repeat("~", len(value)))+quote("\x01"))
	in := strings.Map(alphanumeric, strings.ReplaceAll(shown, Mask, "█"))
	letters := []rune(strings.Map(alphanumeric, quote(value)))
	for i := 0; i+enough <= len(letters); i++ {
		if part := string(letters[i : i+enough]); strings.Contains(in, part) && !strings.Contains(added, part) {
			return part
		}
	}
	return ""
}

func alphanumeric(r rune) rune {
	if r == utf8.RuneError || r < '0' || r > '9' && r < 'A' || r > 'Z' && r < 'a' || r > 'z' && r < 0x80 {
		return -1
	}
	return r
}

func TestRedact(t *testing.T) {
	for canary, value := range canaries {
		for quoting, quote := range quotings {
			t.Run(canary+" as "+quoting+" [F8]", func(t *testing.T) {
				quoted := quote(value)
				for name, redactor := range map[string]*Redactor{
					"alone": New(4, value), "among others": New(6, "another value", value, value+"-2", strings.Repeat("long ", 10000)),
				} {
					got := redactor.Redact("denied the request: value " + quoted + " is wrong")
					if part := findLeak(got, value, quote); part != "" || !strings.Contains(got, Mask) {
						t.Errorf("%s: shows %q of %q: %q", name, part, quoted, got)
					}
					if !strings.HasPrefix(got, "denied the request: ") || !strings.HasSuffix(got, " wrong") {
						t.Errorf("%s: hides too much of %q: %q", name, quoted, got)
					}
				}
			})
		}
	}
}

func TestRedactKeepsTheRest(t *testing.T) {
	r := New(4, "password", "not base64!", "two\nlines", "part", "a part of more", "abc", "", "    ", `""\"`, "\xff\xfe\xfd\xfc")
	for in, want := range map[string]string{
		"":                              "",
		"is password":                   "is ***",
		"is cGFzc3dvcmQ= and a":         "is *** and a",
		"not base64! here":              "*** here",
		"has two\nlines":                "has ***",
		`has "two\nlines" quoted`:       `has "***" quoted`,
		"a part of more, a part":        "***, a ***",
		"passwordpassword":              "***",
		"abc is short,     is no value": "abc is short,     is no value",
		`only quotes: ""\" and "`:       `only quotes: *** and "`,
		"only bytes: \xff\xfe\xfd\xfc":  "only bytes: ***",
		"half \xff":                     "half \xff",
	} {
		if got := r.Redact(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestRedactWithoutValues(t *testing.T) {
	long := strings.Repeat("ä", MaxText)
	var none *Redactor
	for name, r := range map[string]*Redactor{"none": none, "zero": {}, "empty": New(4), "short ones": New(4, "abc")} {
		if got := r.Redact("a text"); got != "a text" {
			t.Errorf("%s: got %q", name, got)
		}
		if got := r.Redact(long); len(got) != MaxText+len("…") || !strings.HasPrefix(long, strings.TrimSuffix(got, "…")) {
			t.Errorf("%s: got %d bytes", name, len(got))
		}
	}
}

// TestRedactShortensTexts checks that a shortened text does not end with the beginning of a value, for each function in
// `quotings`.
func TestRedactShortensTexts(t *testing.T) {
	for canary, value := range canaries {
		for quoting, quote := range quotings {
			t.Run(canary+" as "+quoting+" [F8]", func(t *testing.T) {
				quoted := quote(value)
				r := New(4, value)
				for _, offset := range []int{5, 17 + len(quoting), len(quoted) - 20, margin + len(canary)} {
					text := strings.Repeat("-", max(0, MaxText-offset)) + " " + quoted
					text += strings.Repeat("-", MaxText)
					got := r.Redact(text)
					if part := findLeak(got, value, quote); part != "" {
						t.Fatalf("offset %d: shows %q of %q: %q", offset, part, quoted, got)
					}
					if len(got) > MaxText+len("…") || !strings.HasSuffix(got, "…") {
						t.Errorf("offset %d: %d bytes", offset, len(got))
					}
				}
			})
		}
	}
}

// TestRedactHidesPartsOfLongValues checks that parts of a long value are hidden too.
func TestRedactHidesPartsOfLongValues(t *testing.T) {
	r := New(4, pem)
	numbered := ""
	for i, line := range strings.Split(pem, "\n")[1:4] {
		numbered += fmt.Sprintf("line %d: %s;\n", i, line)
	}
	if got := r.Redact("bad key: " + numbered); got != "bad key: line 0: ***;\nline 1: ***;\nline 2: ***;\n" {
		t.Errorf("r.Redact(...) = %q, want %q", got, "bad key: line 0: ***;\nline 1: ***;\nline 2: ***;\n")
	}
	if got := r.Redact("it begins with " + pem[:60] + " …"); got != "it begins with *** …" {
		t.Errorf("r.Redact(...) = %q, want %q", got, "it begins with *** …")
	}
	huge := make([]byte, 1<<20)
	source := rand.New(rand.NewPCG(1, 2))
	for i := range huge {
		huge[i] = byte('!' + source.IntN(90))
	}
	r = New(4, string(huge))
	for _, at := range []int{0, 1, 17, 500_003} {
		if got := r.Redact("has " + string(huge[at:at+2000]) + " in it"); len(got) > len("has *** in it")+2*stride {
			t.Errorf("a part of a very long value at %d: %q", at, got)
		}
	}
}

func TestRedactWithholdsTooComplexTexts(t *testing.T) {
	many := make([]string, MaxParts/10)
	for i := range many {
		many[i] = fmt.Sprintf("%x", sha256.Sum256([]byte{byte(i), byte(i >> 8), byte(i >> 16)}))[:26]
	}
	deep := "canary\n"
	for range 12 {
		deep = asJSON(deep)
	}
	for name, tc := range map[string]struct {
		values     []string
		text, want string
	}{
		"too many values":        {many, "a text", "too many secret values"},
		"too large values":       {[]string{strings.Repeat("a long value", MaxBytes/11)}, "a text", "too long in total"},
		"quoted too deeply":      {[]string{"canary"}, deep[:min(len(deep), MaxText)], "too deeply"},
		"escapes within escapes": {[]string{"canary"}, "%" + strings.Repeat("25", 40) + "63anary", "too deeply"},
	} {
		t.Run(name+" [F7]", func(t *testing.T) {
			r := New(4, tc.values...)
			for range 2 {
				if got := r.Redact(tc.text); !strings.HasPrefix(got, Withheld) || !strings.Contains(got, tc.want) {
					t.Errorf("got %.100q", got)
				}
			}
			r.AddValues("more")
		})
	}
}

func TestRedactHidesValuesAddedConcurrently(t *testing.T) {
	r := New(4)
	group := sync.WaitGroup{}
	for i := range 8 {
		group.Go(func() {
			value := fmt.Sprintf("value-%d", i)
			r.AddValues(value, value)
			if got := r.Redact("is " + value + "."); got != "is ***." {
				t.Errorf("r.Redact(...) = %q, want %q", got, "is ***.")
			}
		})
	}
	group.Wait()
	if got := r.Redact("value-0 value-7"); got != "*** ***" {
		t.Errorf("r.Redact(...) = %q, want %q", got, "*** ***")
	}
}

// newCostlyText returns many values and a long error text, which are as large as they can be in practice.
func newCostlyText() (values []string, text string) {
	values = make([]string, 40_000)
	for i := range values {
		values[i] = fmt.Sprintf("value-%d-of-many", i)
	}
	return values, strings.Repeat("a webhook says at length that something is wrong: ", 1<<20/50)
}

// TestRedactIsFast checks that redacting a text takes less than half a second on any machine. This text once took half
// a minute.
func TestRedactIsFast(t *testing.T) {
	t.Run("redacting many values in long errors is fast [F7]", func(t *testing.T) {
		values, text := newCostlyText()
		start := time.Now()
		r := New(4, values...)
		for range 10 {
			if got := r.Redact(text); len(got) > MaxText+len("…") || strings.HasPrefix(got, Withheld) {
				t.Fatalf("got %.100q", got)
			}
		}
		if took := time.Since(start); took > testtime.ScaleTimeout(5*time.Second) {
			t.Errorf("took %s", took)
		}
	})
	t.Run("redacting values with equal hashes is fast [F7]", func(t *testing.T) {
		values := make([]string, 1000)
		for i := range values {
			values[i] = strings.Repeat("a", 1000+i)
		}
		start := time.Now()
		if got := New(4, values...).Redact(strings.Repeat("a", 1<<20)); got != Mask+"…" {
			t.Errorf("got %.100q", got)
		}
		if took := time.Since(start); took > testtime.ScaleTimeout(5*time.Second) {
			t.Errorf("took %s", took)
		}
	})
}

func BenchmarkRedact(b *testing.B) {
	values, text := newCostlyText()
	b.Run("learn 40000 values", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			New(4, values...).Redact("a text")
		}
	})
	r := New(4, values...)
	for name, text := range map[string]string{"error of 1 MiB": text, "error of 200 B": text[:200]} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r.Redact(text)
			}
		})
	}
}

func FuzzRedact(f *testing.F) {
	names := []string{}
	for name := range quotings {
		names = append(names, name)
	}
	for i, value := range []string{pem, "pässwörd\n", `a"b'c\n\u0026<d>`, "%41%4", "\xff\xfe\xfd\xfc", `\x\u00\`, "&#x41;&am", "CORP\\admin\nx"} {
		f.Add(value, "before ", " after", uint8(i), uint8(3*i))
		f.Add(value, `\`, "1234", uint8(5*i), uint8(0))
	}
	// The names are sorted because the corpus refers to them by index, and the iteration order of a map is random.
	slices.Sort(names)
	f.Fuzz(func(t *testing.T, value, before, after string, first, second uint8) {
		if len(value) > 1000 || len(before) > 1000 || len(after) > 1000 {
			return
		}
		quoted, encoded := value, 0
		for _, choice := range []uint8{first, second} {
			name := names[int(choice)%len(names)]
			quoted = quotings[name](quoted)
			encoded += strings.Count(name, "base64") + strings.Count(name, "bytes") + strings.Count(name, "hexadecimal")
		}
		if encoded > maxNested {
			return
		}
		text := before + quoted + after
		got := New(4, value).Redact(text)
		if len(got) > MaxText+len("…") && len(got) > 2*len(text)+len(Withheld)+100 {
			t.Errorf("%d bytes of %d", len(got), len(text))
		}
		if got != New(4, value).Redact(text) {
			t.Error("not the same twice")
		}
		if strings.HasPrefix(got, Withheld) || !utf8.ValidString(value) || strings.ContainsRune(value, utf8.RuneError) {
			return
		}
		readings, _ := listForms(newStream(value))
		for _, reading := range readings {
			if len(reading.removeQuotable(false).bytes) < 4 {
				return // quoting may change almost all characters of the value, so it may not be found
			}
		}
		if !strings.Contains(got, Mask) && len(text) <= MaxText {
			t.Errorf("%q as %q and %q, that is %q, is not found: %q", value, names[int(first)%len(names)], names[int(second)%len(names)], text, got)
		}
	})
}
