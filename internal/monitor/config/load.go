package config

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
)

// The file is named before it can be read.
const (
	fileFlag     = "config"
	fileVariable = envPrefix + "CONFIG"
)

// redisNodes names the one Redis to watch from the command line or environment.
const redisNodes = "redis_nodes"

// Load reads the settings from args, the environment, and the file that these
// name. It returns the arguments behind the flags. extra are the flags of a
// command, which it parses with the others. All that is wrong is reported, in
// an error that matches ErrInvalid; flag.ErrHelp is returned as it is.
func Load(args []string, getenv func(string) string, extra func(*flag.FlagSet)) (*Config, []string, error) {
	given := settings{}
	path, rest, err := parseFlags(args, given, extra)
	if err != nil {
		return nil, nil, err
	}
	for name, variable := range rootVariables() {
		if v := getenv(variable); v != "" {
			given.put(name, v, origin{"environment " + variable, byEnvironment})
		}
	}
	if path == "" {
		path = getenv(fileVariable)
	}
	f := &file{settings: settings{}, lists: map[string][]entry{}}
	if path != "" {
		f = readFile(path)
	}
	if f.unreadable {
		return nil, nil, errors.Join(f.problems...)
	}
	for name, s := range f.settings {
		given.put(name, s.value, s.origin)
	}
	c, err := build(path, given, f, getenv)
	return c, rest, err
}

func build(path string, given settings, f *file, getenv func(string) string) (*Config, error) {
	c := &Config{File: path}
	c.show(given)
	problems := append(f.problems, apply(c, options, given, path, "")...)
	redis := f.lists[redisList]
	if one, ok := given[redisNodes]; ok {
		redis = []entry{{settings{"name": {"redis", one.origin}, "nodes": one}, one.where}}
	}
	for _, e := range redis {
		variables(e, redisList, redisOptions, getenv)
	}
	for _, e := range f.lists[receiverList] {
		variables(e, receiverList, receiverOptions, getenv)
	}
	problems = append(problems, c.applyRedis(redis)...)
	problems = append(problems, c.applyReceivers(f.lists[receiverList])...)
	return c, errors.Join(problems...)
}

// rootVariables are the environment variables of single settings, by name.
func rootVariables() map[string]string {
	variables := map[string]string{redisNodes: envName(redisNodes)}
	for i := range options {
		o := &options[i]
		variables[o.name] = o.variable()
		if o.secret {
			variables[o.name+fileSuffix] = o.variable() + strings.ToUpper(fileSuffix)
		}
	}
	return variables
}

// parseFlags puts the flags into given. No flag has a default here: flag would
// print one, and it might be a password.
func parseFlags(args []string, given settings, extra func(*flag.FlagSet)) (path string, rest []string, err error) {
	fs := flag.NewFlagSet("guard-monitor", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	fs.StringVar(&path, fileFlag, "", "")
	for _, name := range append(names(options), redisNodes) {
		fs.Func(flagName(name), "", func(v string) error {
			given.put(name, v, origin{"flag -" + flagName(name), byFlag})
			return nil
		})
	}
	if extra != nil {
		extra(fs)
	}
	err = fs.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return "", nil, err
	case err != nil && strings.Contains(err.Error(), "@"):
		// The error quotes the argument, which may be a URL with a password.
		return "", nil, wrong("", "", "wrong flag: not shown, as it may hold a password")
	case err != nil:
		return "", nil, &Error{"", "", err}
	}
	return path, fs.Args(), nil
}

// show keeps what Show prints, without secrets.
func (c *Config) show(given settings) {
	for i := range options {
		o := &options[i]
		from, ok := given[o.name]
		if byName, named := given[o.name+fileSuffix]; named && (!ok || byName.weight > from.weight) {
			from, ok = byName, true
		}
		if !ok {
			from = setting{o.def, origin{where: "default"}}
		}
		if o.secret && ok {
			from.value = "[hidden]"
		}
		c.shown = append(c.shown, [3]string{o.name, from.value, from.where})
	}
}

// Show writes one line for every single setting: name, value and where it comes
// from. Secrets are hidden.
func (c *Config) Show(w io.Writer) error {
	for _, line := range c.shown {
		if _, err := fmt.Fprintf(w, "%-22s %-44s %s\n", line[0], line[1], line[2]); err != nil {
			return err
		}
	}
	return nil
}
