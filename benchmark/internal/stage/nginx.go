package stage

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"
)

//go:embed nginx.conf.tmpl
var config string

var configTemplate = template.Must(template.New("nginx.conf").Parse(config))

// ErrNoNginx: nginx is not installed.
var ErrNoNginx = errors.New("nginx is missing: apt-get install --no-install-recommends nginx-light, or run with -lb none")

// Nginx is the command line of an nginx for some instances.
type Nginx struct {
	Addr string   // where it listens
	Path string   // the program
	Args []string // in the foreground
}

// NewNginx writes the configuration into dir. The instances are host:port;
// control is the address of who steers the run, "" for none.
func NewNginx(ctx context.Context, dir string, instances []string, control string) (*Nginx, error) {
	path, err := findNginx()
	if err != nil {
		return nil, err
	}
	addr, err := freeAddr(ctx)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "nginx.conf")
	text, err := render(settings{Addr: addr, Dir: dir, Instances: instances, Control: control, Root: os.Getuid() == 0})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("write nginx.conf: %w", err)
	}
	return &Nginx{Addr: addr, Path: path, Args: []string{"-p", dir, "-c", file, "-e", filepath.Join(dir, "error.log")}}, nil
}

// FindNginx returns ErrNoNginx if nginx is not installed.
func FindNginx() error {
	_, err := findNginx()
	return err
}

func findNginx() (string, error) {
	if path, err := exec.LookPath("nginx"); err == nil {
		return path, nil
	}
	const debian = "/usr/sbin/nginx" // not in everybody's PATH
	if _, err := os.Stat(debian); err == nil {
		return debian, nil
	}
	return "", ErrNoNginx
}

type settings struct {
	Addr, Dir string
	Instances []string
	Control   string
	Root      bool
}

func render(s settings) (string, error) {
	var b strings.Builder
	if err := configTemplate.Execute(&b, s); err != nil {
		return "", fmt.Errorf("write nginx.conf: %w", err)
	}
	return b.String(), nil
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

// Pin returns the path by which nginx sends a request to one instance.
func Pin(instance int, path string) string { return "/instance/" + strconv.Itoa(instance) + path }
