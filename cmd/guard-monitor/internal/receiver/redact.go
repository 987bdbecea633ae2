package receiver

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// The shortest parts of an address that are hidden by themselves: "v1" in a
// path or "1" in a query says nothing.
const (
	minSegment = 8
	minValue   = 4
)

// A redactor takes secrets out of text, in the spellings that servers and
// libraries may quote them in.
type redactor []string

func newRedactor(cfg Config) redactor {
	r := redactor{cfg.URL, cfg.Secret, cfg.Token}
	if u, err := url.Parse(cfg.URL); err == nil {
		password, _ := u.User.Password()
		r = append(r, u.RequestURI(), password)
		r = append(r, longer(minSegment, strings.Split(u.Path, "/"))...)
		for _, values := range u.Query() {
			r = append(r, longer(minValue, values)...)
		}
	}
	for _, s := range r {
		r = append(r, url.QueryEscape(s), url.PathEscape(s))
	}
	r = slices.DeleteFunc(r, func(s string) bool { return s == "" || s == "/" })
	slices.SortFunc(r, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return slices.Compact(r)
}

// longer returns the strings of at least n bytes.
func longer(n int, all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return len(s) < n })
}

func (r redactor) clean(s string) string {
	for _, secret := range r {
		s = strings.ReplaceAll(s, secret, "[redacted]")
	}
	return s
}

// validateURL never quotes the address, not even a piece of it.
func (c *Config) validateURL() error {
	if c.URL == "" {
		return errors.New("url is missing")
	}
	var problem string
	switch u, err := url.Parse(c.URL); {
	case err != nil:
		problem = "is malformed"
	case u.Scheme != "http" && u.Scheme != "https":
		problem = "must begin with http:// or https://"
	case u.Hostname() == "":
		problem = "names no host"
	case u.Fragment != "":
		problem = "has a '#'"
	default:
		if _, err := url.ParseQuery(u.RawQuery); err == nil {
			return nil
		}
		problem = "has a malformed query"
	}
	return fmt.Errorf("url %s (not shown: it holds a secret)", problem)
}
