package rabbit

import (
	"errors"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

// A Node is one broker.
type Node struct {
	URL  string // holds the password: never shown
	Addr string // host:port, for logs
	User string // whom the broker takes the connection for; "" if the URL does not say
}

// ParseURL splits an AMQP URL with several hosts, separated by commas, into one for
// each, and checks them.
func ParseURL(raw string) ([]Node, error) {
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
		n, err := parseNode(raw)
		return []Node{n}, err
	}
	var nodes []Node
	for host := range strings.SplitSeq(hosts, ",") {
		n, err := parseNode(scheme + "://" + user + host + behind)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// parseNode checks the URL of one node. Its errors never quote the URL: where a
// password was not encoded, any piece of it may be a part of the password.
func parseNode(raw string) (Node, error) {
	if raw == "" {
		return Node{}, errors.New("rabbitmq: url is empty")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return Node{}, errors.New("rabbitmq: url is malformed; reserved characters in user, password and virtual host must be percent-encoded")
	}
	switch {
	case u.Scheme != "amqp" && u.Scheme != "amqps":
		return Node{}, errors.New("rabbitmq: url must begin with amqp:// or amqps://")
	case u.Hostname() == "":
		return Node{}, errors.New("rabbitmq: url names no host")
	case u.Fragment != "" || strings.Contains(u.EscapedPath()+u.RawQuery, "@"):
		return Node{}, errors.New("rabbitmq: url has a '#' or '@' behind the host; reserved characters in user, password and virtual host must be percent-encoded")
	}
	parsed, err := amqp.ParseURI(raw)
	if err != nil {
		return Node{}, errors.New("rabbitmq: url has an invalid port, blank or query parameter")
	}
	if parsed.Port < 1 || parsed.Port > 65535 {
		return Node{}, errors.New("rabbitmq: url has a port outside 1 to 65535")
	}
	return Node{URL: raw, Addr: net.JoinHostPort(parsed.Host, strconv.Itoa(parsed.Port)), User: user(u, parsed)}, nil
}

// user returns the user of a URL. With EXTERNAL a certificate names the user, so that
// only a name in the URL is one.
func user(u *url.URL, parsed amqp.URI) string {
	if u.User == nil && slices.Contains(parsed.AuthMechanism, "external") {
		return ""
	}
	return parsed.Username
}
