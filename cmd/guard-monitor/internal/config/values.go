package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Secret is a text that is never printed, logged or shown in an error.
// string(s) is the text.
type Secret string

// Format keeps the secret out of what package fmt prints, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write(s.shown()) }

// MarshalText keeps the secret out of YAML, JSON and logs.
func (s Secret) MarshalText() ([]byte, error) { return s.shown(), nil }

func (s Secret) shown() []byte {
	if s == "" {
		return nil
	}
	return []byte("[hidden]")
}

// set gives a field the value that the text says, if the field's tag allows it.
// Its errors say what is allowed and do not quote the text.
func set(field reflect.Value, tag reflect.StructTag, text string) error {
	parts := []string{text}
	if field.Kind() == reflect.Slice {
		parts = strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' && tag.Get("blanks") == "" })
		for i := range parts {
			parts[i] = strings.TrimSpace(parts[i])
		}
		parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
	}
	for _, part := range parts {
		if allowed, ok := tag.Lookup("oneof"); ok && !slices.Contains(strings.Split(allowed, ","), part) {
			return fmt.Errorf("want %s", strings.ReplaceAll(allowed, ",", ", "))
		}
		if c, ok := checks[tag.Get("check")]; ok && !c.fits(part) {
			return errors.New("want " + c.want)
		}
	}
	switch field.Kind() {
	case reflect.Slice:
		if len(parts) == 0 && tag.Get("required") != "" {
			return errors.New("want at least one")
		}
		field.Set(reflect.ValueOf(parts))
	case reflect.Bool:
		if text != "true" && text != "false" {
			return errors.New("want true or false")
		}
		field.SetBool(text == "true")
	case reflect.Int64:
		parse, want := parseNumber, "a whole number, or a size such as 512MiB or 2GiB"
		if field.Type() == reflect.TypeFor[time.Duration]() {
			parse, want = parseDuration, "a duration such as 500ms, 30s, 5m, 12h or 30d"
		}
		least, most, _ := strings.Cut(tag.Get("range"), " to ")
		low, _ := parse(least)
		high, _ := parse(most)
		n, err := parse(text)
		if err != nil {
			return errors.New("want " + want)
		}
		if n < low || n > high {
			return fmt.Errorf("want %s to %s", least, most)
		}
		field.SetInt(n)
	default:
		field.SetString(text)
	}
	return nil
}

// parseDuration takes Go's durations and whole days, such as 30d.
func parseDuration(s string) (int64, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return int64(n) * int64(24*time.Hour), err
	}
	d, err := time.ParseDuration(s)
	return int64(d), err
}

// parseNumber takes whole numbers, also with a unit of 1024, such as 2GiB.
func parseNumber(s string) (int64, error) {
	shift := 0
	for i, unit := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if digits, ok := strings.CutSuffix(s, unit); ok {
			s, shift = digits, 10*(i+1)
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 63-shift)
	return n << shift, err
}

func parseNetwork(s string) (netip.Prefix, error) {
	if ip, err := netip.ParseAddr(s); err == nil {
		return ip.Prefix(ip.BitLen())
	}
	return netip.ParsePrefix(s)
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// checks are those that the tag check names. All values of a list must fit.
var checks = map[string]struct {
	want string
	fits func(string) bool
}{
	"name": {"1 to 64 letters, digits, '-' and '_'", plainName.MatchString},
	"listen": {"host:port with an IP address or localhost, such as 127.0.0.1:9440", func(s string) bool {
		host, port, err := net.SplitHostPort(s)
		_, badPort := strconv.ParseUint(port, 10, 16)
		_, noIP := netip.ParseAddr(host)
		return err == nil && badPort == nil && (noIP == nil || host == "" || host == "localhost")
	}},
	"nodes": {"host:port, such as 127.0.0.1:6379", func(s string) bool {
		host, port, err := net.SplitHostPort(s)
		n, badPort := strconv.ParseUint(port, 10, 16)
		return err == nil && badPort == nil && host != "" && n > 0
	}},
	"networks": {"an IP address or a network, such as 10.0.0.1 or 10.0.0.0/8", func(s string) bool {
		_, err := parseNetwork(s)
		return err == nil
	}},
	"url": {"http://host/path or https://host/path, without user, query and fragment", func(s string) bool {
		u, err := url.Parse(s)
		return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil &&
			u.RawQuery == "" && u.Fragment == ""
	}},
	"zone": {"a time zone such as UTC, Local or Asia/Shanghai", func(s string) bool {
		_, err := time.LoadLocation(s)
		return err == nil
	}},
}
