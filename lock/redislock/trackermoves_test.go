package redislock_test

import (
	"testing"

	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
)

// A lock that moves to another master is not lost, and its loss there is reported.
func testTrackedMigration(t *testing.T, c *ownCluster) {
	e := open(t, c.Addrs...)
	leases := holdTracked(t, e, newLocker(t, e, lock.Config{TTL: longTTL}), "{d}1", "{d}2")
	s := c.shardOf("{d}")
	target := c.otherMaster(s)
	c.must(target, "CLUSTER", "SETSLOT", s.slot, "IMPORTING", c.id(s.master))
	c.must(s.master, "CLUSTER", "SETSLOT", s.slot, "MIGRATING", c.id(target))
	host, port := split(target)
	for _, lease := range leases {
		c.must(s.master, "MIGRATE", host, port, lease.Grant().Key, 0, 1000)
	}
	waitTracked(t, e, 0)
	wantHolding(t, leases...)
	for _, addr := range []string{target, s.master} {
		c.must(addr, "CLUSTER", "SETSLOT", s.slot, "NODE", c.id(target))
	}
	waitTracked(t, e, 2)
	wantHolding(t, leases...)
	c.must(target, "DEL", "{d}1")
	wantLost(t, leases[0])
	wantHolding(t, leases[1])
}

// A master reports that all its keys are deleted. The locks of the others are not lost.
func testTrackedFlush(t *testing.T, c *ownCluster) {
	e := open(t, c.Addrs...)
	master := c.shardOf("{g}").master
	elsewhere := "{h}"
	for c.shardOf(elsewhere).master == master {
		elsewhere = "{h" + elsewhere[1:]
	}
	leases := holdTracked(t, e, newLocker(t, e, lock.Config{TTL: longTTL}), "{g}1", "{g}2", elsewhere)
	c.must(master, "FLUSHALL")
	wantLost(t, leases[:2]...)
	wantHolding(t, leases[2])
}

// The old master lives on, and its connections, too.
func testTrackedManualFailover(t *testing.T, c *ownCluster) {
	e := open(t, c.Addrs...)
	leases := holdTracked(t, e, newLocker(t, e, lock.Config{TTL: longTTL}), "{e}1", "{e}2")
	replica := c.replicaOf(c.shardOf("{e}").master)
	c.must(replica, "CLUSTER", "FAILOVER")
	testwait.Until(t, "the replica is the master", func() bool { return c.shardOf("{e}").master == replica })
	c.must(replica, "DEL", "{e}1")
	wantLost(t, leases[0])
	wantHolding(t, leases[1])
}

// The old master lives on, and its connections, too, but it is not told of what the new one does.
func testTrackedOldMasterIsCutOff(t *testing.T, c *ownCluster) {
	e := open(t, c.Addrs...)
	leases := holdTracked(t, e, newLocker(t, e, lock.Config{TTL: longTTL}), "{f}1", "{f}2")
	replica := c.replicaOf(c.shardOf("{f}").master)
	c.must(replica, "ACL", "SETUSER", "default", "-psync", "-sync")
	defer c.must(replica, "ACL", "SETUSER", "default", "+psync", "+sync")
	c.must(replica, "CLUSTER", "FAILOVER")
	testwait.Until(t, "the replica is the master", func() bool { return c.shardOf("{f}").master == replica })
	c.must(replica, "DEL", "{f}1")
	wantLost(t, leases[0])
	wantHolding(t, leases[1])
}
