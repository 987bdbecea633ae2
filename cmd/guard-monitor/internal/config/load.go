package config

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// The file is named before it can be read.
const (
	fileFlag     = "config"
	fileVariable = envPrefix + "CONFIG"
)

// redisNodes names the one Redis to watch from the command line or environment.
const redisNodes = "redis_nodes"

// Source is where settings come from.
type Source struct {
	Args   []string
	Getenv func(string) string
	Flags  func(*flag.FlagSet) // adds the flags of a command; may be nil
	// NoBroker lets amqp_url be left out.
	NoBroker bool
}

// Load reads the settings from arguments, the environment, and the file that
// these name. It returns the arguments behind the flags. All that is wrong is
// reported, in an error that matches ErrInvalid; flag.ErrHelp is returned as it
// is.
func Load(from Source) (*Config, []string, error) {
	given := settings{}
	path, rest, err := parseFlags(from.Args, given, from.Flags)
	if err != nil {
		return nil, nil, err
	}
	for name, variable := range rootVariables() {
		if v := from.Getenv(variable); v != "" {
			given.put(name, v, origin{"environment " + variable, byEnvironment})
		}
	}
	if path == "" {
		path = from.Getenv(fileVariable)
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
	c, err := build(path, given, f, from)
	return c, rest, err
}

func build(path string, given settings, f *file, from Source) (*Config, error) {
	c := &Config{File: path}
	c.show(given)
	single := slices.Clone(options)
	for i := range single {
		single[i].required = single[i].required && !from.NoBroker
	}
	problems := append(f.problems, apply(c, single, given, path, "")...)
	redis := f.lists[redisList]
	if one, ok := given[redisNodes]; ok {
		redis = []entry{{settings{"name": {"redis", one.origin}, "nodes": one}, one.where}}
	}
	for _, e := range redis {
		variables(e, redisList, redisOptions, from.Getenv)
	}
	for _, e := range f.lists[receiverList] {
		variables(e, receiverList, receiverOptions, from.Getenv)
	}
	problems = append(problems, c.applyRedis(redis)...)
	problems = append(problems, c.applyReceivers(f.lists[receiverList])...)
	if err := c.checkWeb(given); err != nil {
		problems = append(problems, err)
	}
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
