package rabbitmq

import (
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

// A target is the broker of a URL.
type target struct {
	url  string // holds the password: never shown
	addr string // host:port, for logs
}

// parseURL splits an AMQP URL with several hosts, separated by commas, into one
// for each, and checks them.
func parseURL(raw string) ([]target, error) {
	scheme, rest, _ := strings.Cut(raw, "://")
	authority, behind := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, behind = rest[:i], rest[i:]
	}
	user, hosts := "", authority
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		user, hosts = authority[:i+1], authority[i+1:]
	}
	if !strings.Contains(hosts, ",") {
		t, err := parseNode(raw)
		return []target{t}, err
	}
	var targets []target
	for host := range strings.SplitSeq(hosts, ",") {
		t, err := parseNode(scheme + "://" + user + host + behind)
		if err != nil {
			return nil, err
		}
		targets = append(targets, t)
	}
	return targets, nil
}

// parseNode checks the URL of one node. Its errors never quote the URL: where a password
// was not encoded, any piece of it may be a part of the password.
func parseNode(raw string) (target, error) {
	if raw == "" {
		return target{}, errors.New("rabbitmq: url is empty")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return target{}, errors.New("rabbitmq: url is malformed; reserved characters in user, password and virtual host must be percent-encoded")
	}
	switch {
	case u.Scheme != "amqp" && u.Scheme != "amqps":
		return target{}, errors.New("rabbitmq: url must begin with amqp:// or amqps://")
	case u.Hostname() == "":
		return target{}, errors.New("rabbitmq: url names no host")
	case u.Fragment != "" || strings.Contains(u.EscapedPath()+u.RawQuery, "@"):
		return target{}, errors.New("rabbitmq: url has a '#' or '@' behind the host; reserved characters in user, password and virtual host must be percent-encoded")
	}
	parsed, err := amqp.ParseURI(raw)
	if err != nil {
		return target{}, errors.New("rabbitmq: url has an invalid port, blank or query parameter")
	}
	if parsed.Port < 1 || parsed.Port > 65535 {
		return target{}, errors.New("rabbitmq: url has a port outside 1 to 65535")
	}
	return target{url: raw, addr: net.JoinHostPort(parsed.Host, strconv.Itoa(parsed.Port))}, nil
}
