package stage

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"text/template"
)

//go:embed nginx.conf.tmpl
var nginxText string

var nginxConfig = template.Must(template.New("nginx.conf").Parse(nginxText))

type nginxSettings struct {
	Addr, Dir string
	Instances []string
	Control   string
	Root      bool
}

// FindNginx returns the path of nginx.
func FindNginx() (string, error) {
	for _, name := range []string{"nginx", "/usr/sbin/nginx"} { // the second is not in everybody's PATH
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("nginx is missing: apt-get install --no-install-recommends nginx-light, or run with -lb none")
}

// openNginx starts an nginx in front of the instances.
func (s *Stage) openNginx(ctx context.Context) error {
	if !s.cfg.Nginx {
		return nil
	}
	path, err := FindNginx()
	if err != nil {
		return err
	}
	if s.nginx, err = freeAddr(ctx); err != nil {
		return err
	}
	var text bytes.Buffer
	if err := nginxConfig.Execute(&text, nginxSettings{s.nginx, s.Dir, s.Addrs, s.cfg.Control, os.Getuid() == 0}); err != nil {
		return fmt.Errorf("write nginx.conf: %w", err)
	}
	file := filepath.Join(s.Dir, "nginx.conf")
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		return err
	}
	p, err := s.start("nginx", nil, path, "-p", s.Dir, "-c", file, "-e", "stderr")
	if err != nil {
		return err
	}
	return p.healthy(ctx, "http://"+s.nginx)
}

func freeAddr(ctx context.Context) (string, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// Addr is where the i-th user sends its requests to.
func (s *Stage) Addr(i int) string {
	if s.nginx != "" {
		return s.nginx
	}
	return s.Addrs[i%len(s.Addrs)]
}

// Pin is where a user sends path to that must reach a certain instance.
func (s *Stage) Pin(instance int, path string) (addr, full string) {
	if s.nginx != "" {
		return s.nginx, "/instance/" + strconv.Itoa(instance) + path
	}
	return s.Addrs[instance], path
}
