package redislock

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// newClient makes the kind of client that opts select.
func newClient(opts *redis.UniversalOptions) (redis.UniversalClient, error) {
	if opts == nil || len(opts.Addrs) == 0 {
		return nil, errors.New("redislock: UniversalOptions.Addrs is empty")
	}
	switch wrong := slices.IndexFunc(opts.Addrs, notAnAddress); {
	case wrong >= 0:
		return nil, fmt.Errorf("redislock: UniversalOptions.Addrs[%d] is not a host with a port: ParseURL takes a URL", wrong)
	case opts.MasterName != "" && opts.IsClusterMode:
		return nil, errors.New("redislock: UniversalOptions have a MasterName, of Sentinel, and IsClusterMode")
	}
	o := hardened(*opts)
	switch cluster := len(o.Addrs) > 1 || o.IsClusterMode; {
	case o.MasterName != "":
		return redis.NewFailoverClient(o.Failover()), nil
	case cluster && o.DB != 0:
		return nil, errors.New("redislock: a Redis Cluster has no database but 0")
	case cluster:
		return redis.NewClusterClient(clusterOptions(o)), nil
	}
	return redis.NewClient(o.Simple()), nil
}

// notAnAddress reports whether addr has no port, or is empty: go-redis would take that for
// localhost. A URL is none either: it may have a password, and errors quote addresses.
func notAnAddress(addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	return err != nil || port == "" || strings.ContainsAny(addr, "/@")
}

func hardened(o redis.UniversalOptions) *redis.UniversalOptions {
	o.DialTimeout = atMostSecond(o.DialTimeout)
	o.ReadTimeout = atMostSecond(o.ReadTimeout)
	o.WriteTimeout = atMostSecond(o.WriteTimeout)
	o.PoolTimeout = atMostSecond(o.PoolTimeout)
	o.ContextTimeoutEnabled = true
	o.DialerRetries = 1
	o.MinIdleConns = 0 // which are dialled at once
	o.MaxRetries = -1
	o.MaxRedirects = max(o.MaxRedirects, 3) // or MOVED would not be followed
	o.ReadOnly, o.RouteByLatency, o.RouteRandomly = false, false, false
	o.Protocol = 2 // RESP3 looks for push messages around each command
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return &o
}

func clusterOptions(opts *redis.UniversalOptions) *redis.ClusterOptions {
	o := opts.Cluster()
	o.ClusterStateReloadInterval = time.Second
	o.DisableRoutingPolicies = true
	return o
}

func atMostSecond(d time.Duration) time.Duration {
	if d <= 0 || d > time.Second {
		return time.Second
	}
	return d
}
