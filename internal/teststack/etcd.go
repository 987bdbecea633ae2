package teststack

import (
	"strings"
	"testing"
)

// Etcd returns the addresses of the three members of etcd. It is an extra server, as in
// [MySQL9].
func Etcd(tb testing.TB) []string {
	tb.Helper()
	return strings.Split(extra(tb, "BELAY_ETCD_ENDPOINTS", "etcd"), ",")
}

// Endpoints are the addresses of the members of a bed with etcd.
func (b *Bed) Endpoints(tb testing.TB) []string {
	tb.Helper()
	return strings.Split(b.settings(tb)["BELAY_ETCD_ENDPOINTS"], ",")
}
