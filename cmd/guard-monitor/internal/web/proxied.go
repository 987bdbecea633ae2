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
			hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
			if err != nil {
				break
			}
			client = hop.WithZone("").String()
		}
		r.RemoteAddr = client
		next.ServeHTTP(w, r)
	})
}

func (h *Handler) trusts(address string) bool {
	ip, err := netip.ParseAddr(address)
	return err == nil && slices.ContainsFunc(h.cfg.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(ip.Unmap()) })
}
