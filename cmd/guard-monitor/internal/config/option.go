package config

import "strings"

// option describes one setting of a T: of the whole, or of one entry of a list.
type option[T any] struct {
	name  string // in the file; a dot stands for a level
	value string // what it takes, in capitals
	env   string // where it is not the usual name
	def   string // as it would be written; empty = none
	usage []string

	secret   bool // is never shown, and can be read from a file by name_file
	required bool
	set      func(*T, string) error
	example  string // for the sample, where there is no default
}

// fileSuffix makes the name of a setting that names the file of a secret.
const fileSuffix = "_file"

const envPrefix = "BELAY_MONITOR_"

func (o *option[T]) flag() string { return flagName(o.name) }

func (o *option[T]) variable() string {
	if o.env != "" {
		return o.env
	}
	return envName(o.name)
}

func flagName(name string) string { return strings.NewReplacer(".", "-", "_", "-").Replace(name) }

func envName(name string) string {
	return envPrefix + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(name))
}

// A setting is a value that somebody gave, and where.
type setting struct {
	value string
	origin
}

// An origin is where a setting comes from.
type origin struct {
	where  string
	weight int
}

// Who is asked later outweighs who was asked before.
const (
	byDefault = iota
	byFile
	byEnvironment
	byFlag
)

// settings are gathered before any is applied, since a later one may outweigh
// one that is wrong.
type settings map[string]setting

func (s settings) put(name, value string, o origin) {
	if have, ok := s[name]; !ok || have.weight <= o.weight {
		s[name] = setting{value, o}
	}
}

// apply sets all options of t, from s or by default, and returns what is wrong.
// context names an entry of a list in errors; where is that entry's place.
func apply[T any](t *T, options []option[T], s settings, where, context string) (problems []error) {
	for i := range options {
		o := &options[i]
		given, ok, err := lookUp(o, s)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		if !ok && o.required {
			problems = append(problems, wrong(where, context+o.name, "is not set%s", o.hint(context)))
		}
		if !ok && o.def == "" {
			continue
		}
		if !ok {
			given.value = o.def
		}
		if err := o.set(t, given.value); err != nil {
			problems = append(problems, &Error{given.where, context + o.name, err})
		}
	}
	return problems
}

func (o *option[T]) hint(context string) string {
	if context != "" {
		return ""
	}
	return " (flag -" + o.flag() + ", environment " + o.variable() + ")"
}

// lookUp returns what was given for o, if anything: by its name, or for a
// secret by the name of a file, whichever weighs more.
func lookUp[T any](o *option[T], s settings) (setting, bool, error) {
	given, ok := s[o.name]
	if !o.secret {
		return given, ok, nil
	}
	file, named := s[o.name+fileSuffix]
	switch {
	case !named || ok && given.weight > file.weight:
		return given, ok, nil
	case ok && given.weight == file.weight:
		return given, false, wrong(file.where, o.name+fileSuffix, "%s is set too; only one of them can hold", o.name)
	}
	secret, err := readSecret(file.value)
	if err != nil {
		return given, false, &Error{file.where, o.name + fileSuffix, err}
	}
	return setting{secret, file.origin}, true, nil
}
