package web

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// proxied makes r.RemoteAddr the client's address, without a port. A proxy that is
// trusted names the client in X-Forwarded-For, behind what the client itself has sent.
func (h *Handler) proxied(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		client, _, err := net.SplitHostPort(r.RemoteAddr)
		if err != nil {
			client = r.RemoteAddr
		}
		hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
		for i := len(hops) - 1; i >= 0 && h.trusts(client); i-- {
			hop, err := parseHop(strings.TrimSpace(hops[i]))
			if err != nil {
				break
			}
			client = hop.WithZone("").String()
		}
		r.RemoteAddr = client
		next.ServeHTTP(w, r)
	})
}

// parseHop returns the address of an entry of X-Forwarded-For. Some proxies add a port, and
// brackets to IPv6.
func parseHop(hop string) (netip.Addr, error) {
	if withPort, err := netip.ParseAddrPort(hop); err == nil {
		return withPort.Addr(), nil
	}
	if inner, ok := strings.CutPrefix(hop, "["); ok {
		if inner, ok = strings.CutSuffix(inner, "]"); ok {
			hop = inner
		}
	}
	return netip.ParseAddr(hop)
}

func (h *Handler) trusts(address string) bool {
	ip, err := netip.ParseAddr(address)
	return err == nil && slices.ContainsFunc(h.cfg.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(ip.Unmap()) })
}
