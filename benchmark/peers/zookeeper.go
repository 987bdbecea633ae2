package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/belaygo/belay/lock/zklock"
)

func zooKeeperServers() []string { return strings.Split(os.Getenv("BELAY_ZOOKEEPER"), ",") }

// countingPackets has the requests be what the servers have got from clients, pings included.
func (o *opened) countingPackets(servers []string) *opened {
	o.requests = func(ctx context.Context) (sum int64, err error) {
		for _, server := range servers {
			n, err := packets(ctx, server)
			if err != nil {
				return 0, err
			}
			sum += n
		}
		return sum, nil
	}
	return o
}

// packets asks a server how many packets it has got.
func packets(ctx context.Context, server string) (n int64, err error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", server)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("srvr")); err != nil {
		return 0, err
	}
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		if _, err := fmt.Sscanf(lines.Text(), "Received: %d", &n); err == nil {
			return n, nil
		}
	}
	return 0, fmt.Errorf("%s does not say what it has got: %w", server, lines.Err())
}

func openZooKeeper(pidFiles []string) (*opened, error) {
	servers := zooKeeperServers()
	e, err := zklock.New(zklock.Config{Servers: servers})
	if err != nil {
		return nil, err
	}
	return (&opened{pidFiles: pidFiles}).of(e).countingPackets(servers), nil
}

// openZooKeeperRecipe is the lock that a client of ZooKeeper brings along.
func openZooKeeperRecipe(pidFiles []string) (*opened, error) {
	servers := zooKeeperServers()
	client, _, err := zk.Connect(servers, 40*time.Second, zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	o := (&opened{pidFiles: pidFiles}).countingPackets(servers)
	o.closers = append(o.closers, client.Close)
	o.cycle = func(_ context.Context, key, _ string) error {
		l := zk.NewLock(client, "/recipe-"+strings.ReplaceAll(key, "/", "-"), zk.WorldACL(zk.PermAll))
		if err := l.Lock(); err != nil {
			return err
		}
		return l.Unlock()
	}
	return o, nil
}
