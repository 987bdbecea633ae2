// Package words says in English and Chinese what guard-monitor has found.
//
//	for _, e := range found.Evidence {
//		fmt.Println(words.English.Evidence(e))
//	}
//
// Packages watch and incident keep kinds and arguments, and the store keeps no
// sentences: they are made when they are shown. Names from outside are shortened,
// and quoted unless they are ordinary, so that no name passes for the monitor's own
// words. Control characters in names that watch saw in Redis stay: use text.Line.
package words

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
)

// Lang is a language.
type Lang string

// The languages.
const (
	English Lang = "en"
	Chinese Lang = "zh"
)

// phrase is a text in both languages. {name} stands for an argument.
type phrase struct{ en, zh string }

func (l Lang) of(en, zh string) string {
	if l == Chinese {
		return zh
	}
	return en
}

// say returns a phrase, or another text if there is none.
func (l Lang) say(p phrase, otherwise string) string { return cmp.Or(l.of(p.en, p.zh), otherwise) }

// sentence is a text that is put together from phrases with the same arguments.
type sentence struct {
	lang Lang
	args []string // names and values in turn
	said strings.Builder
}

// sentence begins a text. The arguments are names and values in turn.
func (l Lang) sentence(args ...string) *sentence {
	return &sentence{lang: l, args: args}
}

// add adds a phrase. What an argument holds is never taken for another argument.
func (s *sentence) add(en, zh string) *sentence {
	rest, more := s.lang.of(en, zh), true
	for more {
		var literal, name string
		literal, rest, more = strings.Cut(rest, "{")
		s.said.WriteString(literal)
		if more {
			name, rest, _ = strings.Cut(rest, "}")
			s.said.WriteString(s.value(name))
		}
	}
	return s
}

// value returns the argument of a name. There are few of them: a search costs less than a map.
func (s *sentence) value(name string) string {
	for i := 0; i < len(s.args); i += 2 {
		if s.args[i] == name {
			return s.args[i+1]
		}
	}
	return "{" + name + "}"
}

func (s *sentence) String() string { return s.said.String() }

func (s *sentence) addIf(cond bool, en, zh string) *sentence {
	if cond {
		s.add(en, zh)
	}
	return s
}

// count says how many things there are. Chinese has its word for them in the phrase.
func (l Lang) count(n int64, thing string) string {
	s := number(n)
	switch {
	case l == Chinese:
		return s
	case n == 1:
		return s + " " + thing
	}
	return s + " " + thing + "s"
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// seconds is a duration without its unit.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) }

// clock keeps the zone in sight.
func clock(t time.Time) string { return t.UTC().Format("15:04:05.000 UTC") }

const maxQuoted = 128 // bytes of a foreign text in a sentence

func quote(s string) string { return strconv.Quote(text.Clip(s, maxQuoted)) }

// name shows ordinary names bare and quotes the rest.
func name(s string) string {
	ordinary := func(r rune) bool {
		return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("-_.:/@[]%", r)
	}
	if s != "" && len(s) <= maxQuoted && strings.IndexFunc(s, func(r rune) bool { return !ordinary(r) }) < 0 {
		return s
	}
	return quote(s)
}

// name is a name in a sentence about an event: Chinese quotes all of them.
func (l Lang) name(s string) string { return l.of(name(s), quote(s)) }
