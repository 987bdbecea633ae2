package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

const maxFile = 1 << 20 // bytes

// file is what a file says, not yet judged by its meaning.
type file struct {
	name string
	settings
	lists    map[string][]entry
	problems []error

	unreadable bool // so that nothing can be said of what it lacks
}

func readFile(path string) *file {
	f := &file{name: path, settings: settings{}, lists: map[string][]entry{}}
	in, err := os.Open(path) //nolint:gosec // the administrator names it
	if err != nil {
		f.fail(&Error{"", fileFlag, err})
		return f
	}
	defer in.Close()
	raw, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	switch {
	case err != nil:
		f.fail(&Error{"", fileFlag, err})
	case len(raw) > maxFile:
		f.fail(wrong(path, "", "is larger than %d bytes", maxFile))
	default:
		f.parse(raw)
	}
	return f
}

func (f *file) parse(raw []byte) {
	dec := yaml.NewDecoder(strings.NewReader(string(raw)))
	var doc, second yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return // only comments
	}
	if err != nil {
		f.syntax(err)
		return
	}
	if err := dec.Decode(&second); err == nil {
		f.wrong(&second, "", "only one document is read")
	} else if !errors.Is(err, io.EOF) {
		f.syntax(err)
		return
	}
	if len(doc.Content) == 1 {
		f.root(doc.Content[0])
	}
}

var (
	yamlLine  = regexp.MustCompile(`^line (\d+): `)
	yamlQuote = regexp.MustCompile(`'.*'|".*"` + "|`.*`")
)

// syntax turns "yaml: line 3: ..." into our way to name a place. What the
// parser quotes is left out: a password that begins with '*' is an alias to it.
func (f *file) syntax(err error) {
	text, where := strings.TrimPrefix(err.Error(), "yaml: "), f.name
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		text, where = text[len(m[0]):], f.name+":"+m[1]
	}
	f.fail(wrong(where, "", "%s", yamlQuote.ReplaceAllString(text, "'...'")))
}

func (f *file) fail(err error) {
	f.problems = append(f.problems, err)
	f.unreadable = true
}

func (f *file) wrong(n *yaml.Node, name, format string, args ...any) {
	f.problems = append(f.problems, wrong(f.at(n), name, format, args...))
}

func (f *file) at(n *yaml.Node) string { return f.name + ":" + strconv.Itoa(n.Line) }

func (f *file) root(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return
	}
	f.section(n, "")
}

// section reads a mapping, whose names begin with prefix.
func (f *file) section(n *yaml.Node, prefix string) {
	known := names(options)
	f.pairs(n, strings.TrimSuffix(prefix, "."), func(key, value *yaml.Node) {
		name := prefix + key.Value
		switch {
		case prefix == "" && name == redisList:
			f.lists[name] = f.list(value, name, names(redisOptions))
		case prefix == "" && name == receiverList:
			f.lists[name] = f.list(value, name, names(receiverOptions))
		case slices.Contains(known, name):
			f.value(f.settings, value, name, name)
		case slices.ContainsFunc(known, func(k string) bool { return strings.HasPrefix(k, name+".") }):
			f.section(value, name+".")
		default:
			f.unknown(key, name, append(known, redisList, receiverList))
		}
	})
}

func (f *file) list(n *yaml.Node, list string, known []string) (entries []entry) {
	if n.Kind != yaml.SequenceNode {
		f.wrong(n, list, "want a list, with '-' before each entry")
		return nil
	}
	for _, item := range n.Content {
		e := entry{settings{}, f.at(item)}
		f.pairs(item, list, func(key, value *yaml.Node) {
			if !slices.Contains(known, key.Value) {
				f.unknown(key, list+" "+key.Value, known)
				return
			}
			f.value(e.settings, value, key.Value, list+" "+key.Value)
		})
		entries = append(entries, e)
	}
	return entries
}

// pairs calls each for the pairs of a mapping.
func (f *file) pairs(n *yaml.Node, name string, each func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		f.wrong(n, name, "want settings, as 'name: value'")
		return
	}
	lines := make(map[string]int)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			f.wrong(key, name, "want the name of a setting")
			continue
		}
		if line, twice := lines[key.Value]; twice {
			f.wrong(key, short(key.Value), "is set in line %d already", line)
			continue
		}
		lines[key.Value] = key.Line
		each(key, value)
	}
}

// value takes a scalar, or a list of scalars as if it were written with commas.
func (f *file) value(into settings, n *yaml.Node, name, full string) {
	switch n.Kind {
	case yaml.ScalarNode:
		if !f.scalar(n, full) {
			return
		}
		into.put(name, n.Value, origin{f.at(n), byFile})
	case yaml.SequenceNode:
		parts := make([]string, 0, len(n.Content))
		for _, item := range n.Content {
			if item.Kind != yaml.ScalarNode || strings.Contains(item.Value, ",") {
				f.wrong(item, full, "want plain values without a comma in the list")
				return
			}
			if !f.scalar(item, full) {
				return
			}
			parts = append(parts, item.Value)
		}
		into.put(name, strings.Join(parts, ","), origin{f.at(n), byFile})
	case yaml.AliasNode:
		f.wrong(n, full, "aliases are not supported")
	default:
		f.wrong(n, full, "want a value, not settings below it")
	}
}

// scalar reports whether n has a value. One that begins with '!' or '&' is none
// to YAML, and would be lost in silence.
func (f *file) scalar(n *yaml.Node, full string) bool {
	switch {
	case n.Anchor != "" || n.Tag != "" && !strings.HasPrefix(n.Tag, "!!"):
		f.wrong(n, full, "tags and anchors are not supported; put a value that begins with '!' or '&' in quotes")
	case n.Tag == "!!null":
		f.wrong(n, full, "has no value")
	default:
		return true
	}
	return false
}

func (f *file) unknown(key *yaml.Node, name string, known []string) {
	hint := ""
	if near := nearest(key.Value, known); near != "" {
		hint = fmt.Sprintf("; did you mean %s?", near)
	}
	f.wrong(key, short(name), "unknown setting%s", hint)
}

// short shows a name that anybody may have written.
func short(name string) string {
	if quoted := strconv.Quote(name); len(name) <= 80 && quoted == `"`+name+`"` {
		return name
	}
	return fmt.Sprintf("%.80q", name)
}

// names are all names by which the options can be set.
func names[T any](options []option[T]) (all []string) {
	for i := range options {
		all = append(all, options[i].name)
		if options[i].secret {
			all = append(all, options[i].name+fileSuffix)
		}
	}
	return all
}

// nearest returns the known name, or its last part, that is at most two
// changes away from name.
func nearest(name string, known []string) string {
	best, least := "", 3
	for _, k := range known {
		last := k[strings.LastIndexByte(k, '.')+1:]
		for _, candidate := range []string{k, last} {
			if d := distance(name, candidate); d < least {
				best, least = k, d
			}
		}
	}
	return best
}

// distance is Levenshtein's; names longer than any setting are far away.
func distance(a, b string) int {
	if len(a) > 40 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
