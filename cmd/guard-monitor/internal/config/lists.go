package config

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/receiver"
)

// Names of the lists.
const (
	redisList    = "redis"
	receiverList = "receivers"
)

// groupLabels are the labels that incidents can be grouped by.
var groupLabels = []string{"service", "cause", "cluster", "shard", "severity"}

func labels(into func(*Receiver) *[]string) func(*Receiver, string) error {
	split := list(into)
	return func(r *Receiver, s string) error {
		if err := split(r, s); err != nil {
			return err
		}
		for _, label := range *into(r) {
			if !slices.Contains(groupLabels, label) {
				return fmt.Errorf("%.40q is none of %s", label, strings.Join(groupLabels, ", "))
			}
		}
		return nil
	}
}

func nodes(into func(*Redis) *[]string) func(*Redis, string) error {
	split := list(into)
	return func(r *Redis, s string) error {
		if err := split(r, s); err != nil {
			return err
		}
		if len(*into(r)) == 0 {
			return fmt.Errorf("names no node")
		}
		for _, node := range *into(r) {
			host, port, err := net.SplitHostPort(node)
			n, bad := strconv.ParseUint(port, 10, 16)
			if err != nil || bad != nil || host == "" || n == 0 {
				return fmt.Errorf("want host:port, such as 127.0.0.1:6379")
			}
		}
		return nil
	}
}

// entry is one item of a list in the file.
type entry struct {
	settings
	where string
}

// variables adds what the environment says of the options of an entry.
func variables[T any](e entry, list string, options []option[T], getenv func(string) string) {
	name := e.settings["name"].value
	if name == "" {
		return
	}
	for i := range options {
		o := &options[i]
		names := []string{o.name}
		if o.secret {
			names = append(names, o.name+fileSuffix)
		}
		for _, n := range names {
			variable := envName(list + "_" + name + "_" + n)
			if v := getenv(variable); v != "" {
				e.put(n, v, origin{"environment " + variable, byEnvironment})
			}
		}
	}
}

// applyRedis sets the watched Redis: those of the file, or the one that flags
// or the environment name.
func (c *Config) applyRedis(entries []entry) (problems []error) {
	seen := make(map[string]bool)
	for _, e := range entries {
		var r Redis
		problems = append(problems, apply(&r, redisOptions, e.settings, e.where, redisList+" ")...)
		if seen[r.Name] {
			problems = append(problems, wrong(e.where, redisList, "another has the name %q", r.Name))
		}
		seen[r.Name] = true
		if r.Name != "" && !plainName(r.Name) {
			problems = append(problems, wrong(e.where, redisList, "name %.80q: want at most 64 letters, digits, '-' and '_'", r.Name))
		}
		c.Redis = append(c.Redis, r)
	}
	return problems
}

func (c *Config) applyReceivers(entries []entry) (problems []error) {
	seen := make(map[string]bool)
	for _, e := range entries {
		var r Receiver
		wrongOnes := apply(&r, receiverOptions, e.settings, e.where, receiverList+" ")
		problems = append(problems, wrongOnes...)
		if len(wrongOnes) == 0 {
			if err := r.Validate(); err != nil {
				problems = append(problems, wrong(e.where, receiverList, "%w", err))
			}
			problems = append(problems, r.leaveToAlertmanager(e)...)
		}
		if seen[r.Name] && r.Name != "" {
			problems = append(problems, wrong(e.where, receiverList, "another has the name %q", r.Name))
		}
		seen[r.Name] = true
		r.Location = c.Location
		c.Receivers = append(c.Receivers, r)
	}
	return problems
}

// leaveToAlertmanager: it groups and repeats by itself, and wants to hear of
// every alert all the time.
func (r *Receiver) leaveToAlertmanager(e entry) (problems []error) {
	if r.Kind != receiver.Alertmanager {
		return nil
	}
	for _, name := range []string{"group_by", "group_wait", "group_interval", "repeat_interval", "rate_limit", "send_resolved", "max_alerts"} {
		if given, ok := e.settings[name]; ok {
			problems = append(problems, wrong(given.where, receiverList+" "+name, "is up to Alertmanager"))
		}
	}
	r.GroupBy, r.GroupWait, r.GroupInterval, r.RatePerMinute, r.MaxAlerts = nil, 0, 0, 0, 0
	r.RepeatInterval = receiver.AlertmanagerRepeat
	return problems
}

func plainName(s string) bool {
	return len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}
