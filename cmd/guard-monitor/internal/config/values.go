package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

// parseDuration takes Go's durations and whole days, such as 30d.
func parseDuration(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return time.Duration(n) * day, nil
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("%.40q is no duration such as 500ms, 30s, 5m, 12h or 30d", s)
	}
	return d, nil
}

func duration[T any](into func(*T) *time.Duration, least, most time.Duration) func(*T, string) error {
	return func(t *T, s string) error {
		d, err := parseDuration(s)
		if err != nil {
			return err
		}
		if d < least || d > most {
			return fmt.Errorf("%s is outside %v to %v", s, least, most)
		}
		*into(t) = d
		return nil
	}
}

func text[T any](into func(*T) *string) func(*T, string) error {
	return func(t *T, s string) error {
		*into(t) = s
		return nil
	}
}

func list[T any](into func(*T) *[]string) func(*T, string) error {
	return func(t *T, s string) error {
		*into(t) = nil
		for part := range strings.SplitSeq(s, ",") {
			if part = strings.TrimSpace(part); part != "" {
				*into(t) = append(*into(t), part)
			}
		}
		return nil
	}
}

func number[T any, N int | int64](into func(*T) *N, least, most N) func(*T, string) error {
	return func(t *T, s string) error {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < int64(least) || n > int64(most) {
			return fmt.Errorf("%.40q is no whole number from %d to %d", s, least, most)
		}
		*into(t) = N(n)
		return nil
	}
}

func boolean[T any](into func(*T) *bool) func(*T, string) error {
	return func(t *T, s string) error {
		switch s {
		case "true":
			*into(t) = true
		case "false":
			*into(t) = false
		default:
			return fmt.Errorf("%.40q is neither true nor false", s)
		}
		return nil
	}
}

var units = []struct {
	name  string
	bytes int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"", 1}}

// size takes bytes, and units of 1024.
func size[T any](into func(*T) *int64, least int64) func(*T, string) error {
	return func(t *T, s string) error {
		for _, unit := range units {
			digits, ok := strings.CutSuffix(s, unit.name)
			if !ok {
				continue
			}
			n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
			if err != nil || n < 0 || n > (1<<50)/unit.bytes {
				break
			}
			if n*unit.bytes < least {
				return fmt.Errorf("%s is less than %d bytes", s, least)
			}
			*into(t) = n * unit.bytes
			return nil
		}
		return fmt.Errorf("%.40q is no size such as 512MiB or 2GiB", s)
	}
}

func setLevel(c *Config, s string) error {
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	level, ok := levels[s]
	if !ok {
		return fmt.Errorf("%.40q is none of debug, info, warn, error", s)
	}
	c.LogLevel = level
	return nil
}

func setFormat(c *Config, s string) error {
	if s != "text" && s != "json" {
		return fmt.Errorf("%.40q is neither text nor json", s)
	}
	c.LogJSON = s == "json"
	return nil
}

func setLocation(c *Config, s string) error {
	location, err := time.LoadLocation(s)
	if err != nil || s == "" {
		return fmt.Errorf("%.80q is no time zone such as UTC, Local or Asia/Shanghai", s)
	}
	c.Location = location
	return nil
}

func setListen(c *Config, addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("%.80q: want host:port, such as 127.0.0.1:9440", addr)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%.80q: the port is not a number from 0 to 65535", addr)
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "" && host != "localhost" {
		return fmt.Errorf("%.80q: want an IP address or localhost before the port", addr)
	}
	c.Listen = addr
	return nil
}

func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	ip, err2 := netip.ParseAddr(host)
	return err == nil && (host == "localhost" || err2 == nil && ip.IsLoopback())
}

// checkWeb finds what is wrong with settings that are right by themselves.
func (c *Config) checkWeb(given settings) error {
	where := given["listen"].where
	switch w := c.Web; {
	case c.Listen != "" && !c.Loopback() && w.UsersFile == "" && w.Token == "" && !w.Anybody:
		return wrong(where, "listen", "%.80q: not a loopback address; without authentication (web.users_file, web.token) "+
			"guard-monitor listens on 127.0.0.1, [::1] or localhost only, unless web.allow_anybody says otherwise", c.Listen)
	case (w.CertFile == "") != (w.KeyFile == ""):
		return wrong("", "web.tls_cert_file", "the certificate and its key, web.tls_key_file, come together")
	}
	return nil
}

func webAddress(into func(*Config) *string, ending string) func(*Config, string) error {
	return func(c *Config, s string) error {
		u, err := url.Parse(s)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return errors.New("want http://host/path or https://host/path, without user, query and fragment")
		}
		*into(c) = strings.TrimRight(s, "/") + ending
		return nil
	}
}

const maxSecret = 8 << 10 // bytes of a file with a secret

// readSecret returns the text of a file without the line end behind it.
func readSecret(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > maxSecret {
		return "", fmt.Errorf("%s is no file of at most %d bytes", path, maxSecret)
	}
	b, err := os.ReadFile(path) //nolint:gosec // the administrator names it
	if err != nil {
		return "", err
	}
	secret := strings.TrimRight(string(b), "\r\n")
	if secret == "" {
		return "", fmt.Errorf("%s is empty", path)
	}
	return secret, nil
}
