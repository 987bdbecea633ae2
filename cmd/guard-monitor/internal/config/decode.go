package config

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// decoder sets the fields of structs from the nodes of a YAML file. The decoder
// of yaml quotes values in its errors, and does not name the setting.
type decoder struct {
	file     string
	getenv   func(string) string
	places   map[string]string // where each setting that is given stands, by its full name
	problems []error
}

// fail notes a problem of the setting name at a place; each of the two may be
// empty.
func (d *decoder) fail(place, name string, problem error) {
	for _, part := range []string{name, place} {
		if part != "" {
			problem = fmt.Errorf("%s: %w", part, problem)
		}
	}
	d.problems = append(d.problems, &Error{problem})
}

func (d *decoder) at(n *yaml.Node) string { return d.file + ":" + strconv.Itoa(n.Line) }

// section sets the fields of a struct from a mapping. name is that of the
// section, empty for the whole file.
func (d *decoder) section(n *yaml.Node, name string, to reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.fail(d.at(n), name, errors.New("want settings, as 'name: value'"))
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		d.setting(n.Content[i], n.Content[i+1], name, to)
	}
	for field := range to.Type().Fields() {
		full := join(name, field.Tag.Get("yaml"))
		if _, given := d.places[full]; !given && field.Tag.Get("required") != "" {
			d.fail(d.at(n), full, errors.New("is required"))
		}
	}
}

func join(section, name string) string { return strings.TrimPrefix(section+"."+name, ".") }

// setting sets the field of a struct that key names.
func (d *decoder) setting(key, value *yaml.Node, section string, to reflect.Value) {
	field, fromFile, known := fieldOf(to.Type(), key.Value)
	if !known {
		if plainName.MatchString(key.Value) { // otherwise it may be anything, even a password
			section = join(section, key.Value)
		}
		d.fail(d.at(key), section, fmt.Errorf("unknown setting; there are %s", strings.Join(namesOf(to.Type()), ", ")))
		return
	}
	target, full := to.FieldByIndex(field.Index), join(section, field.Tag.Get("yaml"))
	if first, twice := d.places[full]; twice {
		d.fail(d.at(key), full, fmt.Errorf("is set already at %s", first))
		return
	}
	d.places[full] = d.at(value)
	if target.Kind() == reflect.Struct {
		d.section(value, full, target)
		return
	}
	list := target.Kind() == reflect.Slice
	if list && field.Type.Elem().Kind() == reflect.Struct {
		d.list(value, full, target)
		return
	}
	text, err := d.text(value, list)
	if err == nil && fromFile {
		text, err = readSecret(text)
	}
	if err == nil {
		err = set(target, field.Tag, text)
	}
	if err != nil {
		d.fail(d.at(value), join(section, key.Value), err)
	}
}

func namesOf(t reflect.Type) (names []string) {
	for field := range t.Fields() {
		names = append(names, field.Tag.Get("yaml"))
	}
	return names
}

// fieldOf returns the field of a struct that has the name in YAML. fromFile is
// true if the name is that of a secret with _file behind it.
func fieldOf(t reflect.Type, name string) (_ reflect.StructField, fromFile, ok bool) {
	for field := range t.Fields() {
		switch tag := field.Tag.Get("yaml"); {
		case name == tag:
			return field, false, true
		case name == tag+"_file" && field.Type == reflect.TypeFor[Secret]():
			return field, true, true
		}
	}
	return reflect.StructField{}, false, false
}

// list adds an entry to a slice of structs for each item of a sequence.
func (d *decoder) list(n *yaml.Node, name string, to reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		d.fail(d.at(n), name, errors.New("want a list, with '-' before each entry"))
		return
	}
	for i, item := range n.Content {
		full := fmt.Sprintf("%s[%d]", name, i)
		d.places[full] = d.at(item)
		entry := reflect.New(to.Type().Elem()).Elem()
		setDefaults(entry)
		d.section(item, full, entry)
		for j := range i {
			if id := entry.FieldByName("Name").String(); id != "" && id == to.Index(j).FieldByName("Name").String() {
				d.fail(d.at(item), full, fmt.Errorf("%s[%d] has the name %s already", name, j, id))
			}
		}
		to.Set(reflect.Append(to, entry))
	}
}

// text returns the text of a scalar, or of a list of scalars with commas between
// them.
func (d *decoder) text(n *yaml.Node, list bool) (string, error) {
	switch {
	case n.Kind == yaml.AliasNode, n.Anchor != "", n.Style&yaml.TaggedStyle != 0:
		return "", errors.New("aliases, anchors and tags are not supported; put a value that begins with '*', '&' or '!' in quotes")
	case n.Kind == yaml.SequenceNode && list:
		parts := make([]string, len(n.Content))
		for i, item := range n.Content {
			var err error
			if parts[i], err = d.text(item, false); err != nil {
				return "", err
			}
		}
		return strings.Join(parts, ","), nil
	case n.Kind != yaml.ScalarNode:
		return "", errors.New("want a value")
	case n.Value == "" || n.Tag == "!!null":
		return "", errors.New("has no value")
	}
	return expand(n.Value, d.getenv)
}

var reference = regexp.MustCompile(`\$?\$\{([A-Za-z_][A-Za-z0-9_]*\}|)`)

// expand replaces ${NAME} by an environment variable, and $${ by ${. It does not
// look into what it has put in.
func expand(text string, getenv func(string) string) (_ string, err error) {
	text = reference.ReplaceAllStringFunc(text, func(ref string) string {
		name, closed := strings.CutSuffix(strings.TrimLeft(ref, "${"), "}")
		switch value := getenv(name); {
		case strings.HasPrefix(ref, "$$"):
			return ref[1:]
		case !closed:
			err = errors.New("want ${NAME} with the name of an environment variable; $${ stands for ${")
		case value == "":
			err = fmt.Errorf("the environment variable %.80s is not set, or is empty", name)
		default:
			return value
		}
		return ""
	})
	return text, err
}

// setDefaults sets the fields that have a default, also those of sections below.
func setDefaults(v reflect.Value) {
	for field := range v.Type().Fields() {
		target := v.FieldByIndex(field.Index)
		if text, ok := field.Tag.Lookup("default"); ok {
			if err := set(target, field.Tag, text); err != nil {
				panic(fmt.Sprintf("config: default of %s: %v", field.Name, err))
			}
		} else if target.Kind() == reflect.Struct {
			setDefaults(target)
		}
	}
}
