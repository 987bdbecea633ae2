package redislock

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/tlsfile"
)

var errNoScheme = errors.New("redislock: the URL does not begin with redis://, redis+cluster://, redis+sentinel:// or these with rediss: put one of them before the address")

// ParseURL returns the options for Open that a URL stands for:
//
//	redis://[user:password@]host[:6379][/database]
//	redis+cluster://[user:password@]host[:6379],host[:6379]
//	redis+sentinel://[user:password@]host[:26379],host[:26379]/name[/database]
//
// The first is a single server, or the one address that a provider names for a primary
// and its replicas. A cluster needs one address of a node. The name is that of the master
// in Sentinel; user and password are those of Redis, and the parameters sentinel_username
// and sentinel_password those of Sentinel. With rediss in place of redis the connections
// use TLS: cacertfile names the authorities in place of the system's, certfile and keyfile
// the client's own certificate, all in PEM. Other parameters are those of redis.ParseURL,
// as pool_size=20 or skip_verify=true.
//
// Its errors do not contain the URL, which may have a password.
func ParseURL(text string) (*redis.UniversalOptions, error) {
	if !strings.Contains(text, "://") {
		return nil, errNoScheme
	}
	u, err := parseHosts(text)
	if err != nil || strings.Contains(u.EscapedPath()+u.RawQuery+u.EscapedFragment(), "@") { // the rest of a password
		return nil, errors.New("redislock: the URL can't be parsed: a password has / @ : ? # and % as %2F %40 %3A %3F %23 and %25")
	}
	transport, kind, _ := strings.Cut(u.Scheme, "+")
	if transport != "redis" && transport != "rediss" || u.Host == "" {
		return nil, errNoScheme
	}
	var o *redis.UniversalOptions
	path := strings.Trim(u.Path, "/")
	switch kind {
	case "":
		o, err = universal(u, "6379", path)
		if err == nil && len(o.Addrs) > 1 {
			err = errors.New("several addresses need redis+cluster:// or redis+sentinel://")
		}
	case "cluster":
		o, err = universal(u, "6379", path)
		if err == nil {
			o.IsClusterMode = true
		}
	case "sentinel":
		o, err = sentinelOptions(u, path)
	default:
		err = fmt.Errorf("redis+%s is none of redis, redis+cluster and redis+sentinel", kind)
	}
	if err != nil {
		return nil, fmt.Errorf("redislock: the URL of Redis: %w", err)
	}
	return o, nil
}

// parseHosts parses a URL with any number of hosts. url.Parse accepts only one that is an address
// of IPv6.
func parseHosts(text string) (*url.URL, error) {
	scheme, rest, _ := strings.Cut(text, "://")
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	from := strings.LastIndexByte(rest[:end], '@') + 1
	u, err := url.Parse(scheme + "://" + rest[:from] + "host" + rest[end:])
	if err != nil {
		return nil, err
	}
	var hosts []string
	for host := range strings.SplitSeq(rest[from:end], ",") {
		one, err := url.Parse(scheme + "://" + host)
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, one.Host)
	}
	u.Host = strings.Join(hosts, ",")
	return u, nil
}

func sentinelOptions(u *url.URL, path string) (*redis.UniversalOptions, error) {
	name, database, _ := strings.Cut(path, "/")
	if name == "" {
		return nil, errors.New("the name of the master is missing, as in redis+sentinel://host:26379/mymaster")
	}
	parameters := u.Query()
	user, password := take(parameters, "sentinel_username"), take(parameters, "sentinel_password")
	u.RawQuery = parameters.Encode()
	o, err := universal(u, "26379", database)
	if err != nil {
		return nil, err
	}
	o.MasterName, o.SentinelUsername, o.SentinelPassword = name, user, password
	return o, nil
}

// take removes a parameter, and returns it.
func take(parameters url.Values, name string) string {
	defer parameters.Del(name)
	return parameters.Get(name)
}

// universal lets go-redis parse the common parts of URLs.
func universal(u *url.URL, port, database string) (*redis.UniversalOptions, error) {
	transport, _, _ := strings.Cut(u.Scheme, "+")
	parameters := u.Query()
	files := tlsfile.Files{Authorities: take(parameters, "cacertfile"), Certificate: take(parameters, "certfile"), Key: take(parameters, "keyfile")}
	common := url.URL{Scheme: transport, User: u.User, Host: "localhost", Path: "/" + database, RawQuery: parameters.Encode()}
	parsed, err := redis.ParseURL(common.String())
	if err != nil {
		return nil, err
	}
	switch {
	case parsed.TLSConfig != nil:
		insecure := parsed.TLSConfig.InsecureSkipVerify
		if parsed.TLSConfig, err = files.Config(); err != nil { // the name of the server is the host of each address
			return nil, err
		}
		parsed.TLSConfig.InsecureSkipVerify = insecure
	case files != tlsfile.Files{}:
		return nil, errors.New("certificates need rediss in place of redis")
	}
	o := &redis.UniversalOptions{
		DB: parsed.DB, Username: parsed.Username, Password: parsed.Password, ClientName: parsed.ClientName,
		DialTimeout: parsed.DialTimeout, ReadTimeout: parsed.ReadTimeout, WriteTimeout: parsed.WriteTimeout,
		PoolSize: parsed.PoolSize, PoolTimeout: parsed.PoolTimeout, PoolFIFO: parsed.PoolFIFO,
		MinIdleConns: parsed.MinIdleConns, MaxIdleConns: parsed.MaxIdleConns, MaxActiveConns: parsed.MaxActiveConns,
		ConnMaxIdleTime: parsed.ConnMaxIdleTime, ConnMaxLifetime: parsed.ConnMaxLifetime,
		TLSConfig: parsed.TLSConfig,
	}
	for address := range strings.SplitSeq(u.Host, ",") {
		if address == "" {
			return nil, errors.New("an address is empty")
		}
		if _, _, err := net.SplitHostPort(address); err != nil {
			address = net.JoinHostPort(strings.Trim(address, "[]"), port)
		}
		o.Addrs = append(o.Addrs, address)
	}
	return o, nil
}
