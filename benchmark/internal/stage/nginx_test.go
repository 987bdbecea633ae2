package stage

import (
	"regexp"
	"strings"
	"testing"
)

func TestConfigListensOnLoopbackOnly(t *testing.T) {
	var b strings.Builder
	if err := nginxConfig.Execute(&b, nginxSettings{
		Addr: "127.0.0.1:8080", Dir: "/tmp/x", Instances: []string{"127.0.0.1:1001", "127.0.0.1:1002"}, Control: "127.0.0.1:1003",
	}); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	listens := regexp.MustCompile(`(?m)^\s*listen (\S+)`).FindAllStringSubmatch(text, -1)
	if len(listens) != 1 || listens[0][1] != "127.0.0.1:8080" {
		t.Errorf("listens on %v", listens)
	}
	for _, want := range []string{"server 127.0.0.1:1001 ", "server 127.0.0.1:1002 ", "location /instance/1/", "location = /killed", "proxy_next_upstream off"} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q", want)
		}
	}
	s := &Stage{nginx: "127.0.0.1:8080"}
	if addr, path := s.Pin(1, "/belay?order=x"); addr != s.nginx || path != "/instance/1/belay?order=x" {
		t.Errorf("pinned to %s%s", addr, path)
	}
}
